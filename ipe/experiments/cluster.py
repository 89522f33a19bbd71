"""Dask's workers: a local cluster of one process per core, or those of a running scheduler."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.deep.compilation import training_environment
from ipe.errors import InputError
from ipe.experiments.dispatch import Dispatch
from ipe.experiments.ledger import Ledger
from ipe.experiments.workers import environment, sees

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

DEATHS = 3
"""Processes that a job may end before it is looked at whether it gets anywhere."""
LOST_SECONDS = 120.0
"""For a new worker process to start, on a busy machine; Dask gives up on it then, and another is asked for."""
_CONNECT_SECONDS = 20.0


def check_installed() -> None:
    """Refuse, in a sentence, where Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            'sweeps over several processes need Dask, which is not installed: pip install "ipe[sweeps]"; '
            "or give --shard 0/1, which needs none"
        ) from None


def check_scheduler(address: str) -> None:
    """Refuse, in a sentence, an address at which there is no scheduler."""
    with _quiet():
        _connected(address).close()


def _connected(address: str) -> Client:
    from distributed import Client

    made: list[Client] = []

    class Known(Client):  # type: ignore[misc]
        """One that is known before it is connected."""

        def start(self, **options: Any) -> Any:
            made.append(self)
            return super().start(**options)

    try:
        return Known(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        for client in made:  # left to Python's collector, it would wait for a lock that whoever is collecting may hold
            client.close()
        said = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"there is no Dask scheduler at {address}: {said}") from None


def run_on_cluster(ledger: Ledger, options: dict[str, Any], workers: int, scheduler: str | None) -> None:
    """Do the jobs on Dask's workers.

    Args:
        ledger: the jobs, and what has become of them.
        options: of `ipe.experiments.jobs.run_job`.
        workers: processes of a local cluster.
        scheduler: the address of a running scheduler to use instead.
    """
    with _quiet(), _client(min(workers, len(ledger.waiting)), scheduler) as (client, cluster):
        if scheduler is not None:
            _check_workers(client, ledger.store.folder)
        Dispatch(ledger, options, client, cluster, scheduler).run()


@contextlib.contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[tuple[Client, LocalCluster | None]]:
    import dask
    from distributed import Client, LocalCluster

    if scheduler is not None:
        with contextlib.closing(_connected(scheduler)) as client:
            yield client, None
        return
    configuration = {
        "distributed.scheduler.allowed-failures": DEATHS - 1,
        "distributed.scheduler.worker-ttl": None,  # whether an environment hangs is for the watchdog to say
        "distributed.deploy.lost-worker-timeout": f"{LOST_SECONDS}s",
        "distributed.worker.profile.enabled": False,  # it looks at the worker a hundred times a second
        "distributed.worker.daemon": False,  # environments may have processes of their own
    }
    with (
        environment(training_environment(os.environ)),  # as the worker processes are to find it when they start
        dask.config.set(configuration),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # None would be all of this machine's addresses
            worker_dashboard_address="127.0.0.1:0",
            memory_limit=0,  # Dask would pause or end workers whose replay is large
            silence_logs=logging.CRITICAL,
            preload=["ipe.experiments.workers"],
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client, cluster


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask's log tells of every lost connection; what matters is in the ledger."""
    import distributed  # noqa: F401 - it gives its loggers levels of their own

    known = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [logging.getLogger(name) for name in ("distributed", *known, "tornado.application", "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _check_workers(client: Client, folder: Path) -> None:
    """That those that are there see the folder; others may come later."""
    try:
        answers = client.run(sees, str(folder.resolve()))
    except Exception as error:  # whatever a worker without ipe, or with another one, raises
        said = " ".join(str(error).split())
        raise InputError(f"the scheduler's workers cannot run ipe: {type(error).__name__}: {said}") from None
    for address, why in answers.items():
        if why:
            raise InputError(f"the worker {address} cannot take part: {why}")
