"""What holds for every test: Hypothesis's profiles, one cache of compiled programs, and that Ctrl-C is heard."""

from __future__ import annotations

import os
import signal
import tempfile
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

from ipe.deep.compilation import training_environment

# Without Stable-Baselines3 or torch the modules that import them cannot be imported for their doctests.
collect_ignore = [] if find_spec("stable_baselines3") else ["ipe/integrations/stable_baselines3"]
collect_ignore += [] if find_spec("torch") else ["ipe/experiments/torch_networks.py"]

# No deadlines, because two cores that others use are slow at times; fixed draws, so that a red test stays red.
settings.register_profile(
    "full", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("full"), max_examples=25)
settings.load_profile("quick")  # `make test-all` asks for the other one with --hypothesis-profile=full

# A shell that runs the tests in the background makes them, and every process that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Keep what JAX and GCC compile for the whole session, and let no process start a pool of threads.

    xdist's workers and the processes that tests start inherit both: what one of them compiled, the others load.
    """
    if hasattr(config, "workerinput"):
        return
    cache = tempfile.TemporaryDirectory(prefix="ipe-tests-", ignore_cleanup_errors=True)
    config.add_cleanup(cache.cleanup)
    # Matplotlib's list of fonts stays where it is: to make it anew takes seconds, and matplotlib says so.
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.environ.setdefault("MPLCONFIGDIR", os.path.join(caches, "matplotlib"))
    os.environ["XDG_CACHE_HOME"] = cache.name
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
    os.environ.update(training_environment(os.environ))
