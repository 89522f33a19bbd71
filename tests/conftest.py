"""Hypothesis without deadlines (two noisy cores) and with fixed draws: a red test stays red."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ipe", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ipe")
