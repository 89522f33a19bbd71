"""Hypothesis without deadlines (two noisy cores) and with fixed draws: a red test stays red. Ctrl-C is heard."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ipe", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ipe")

# A shell that runs the tests in the background has Ctrl-C ignored, by them and by every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
