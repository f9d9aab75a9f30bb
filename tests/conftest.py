"""Real clusters for the tests that ask for them: started once, stopped at the end, each test with topics of its own."""

from __future__ import annotations

import gc
import hashlib
import itertools
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import HealthCheck, settings

# Modules and collected tests stay until the end: looking for garbage among them would take a tenth of the time.
gc.disable()

# The same examples in every run, so that a change is judged by what it changed; `make fuzz` looks for new ones.
_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("house", _patient, max_examples=40, derandomize=True)
settings.register_profile("fuzz", _patient, max_examples=int(os.environ.get("EXAMPLES", "5000")))
settings.load_profile("house")
# Java's second compiler pays after minutes; a broker of a test lives for less, and would spend half its time in it.
os.environ.setdefault("KAFKA_HEAP_OPTS", "-Xms128m -Xmx512m -XX:TieredStopAtLevel=1")

from heliograph.config.secrets import known_secrets  # noqa: E402
from heliograph.embedded import process  # noqa: E402
from heliograph.embedded.kafka_cluster import EmbeddedCluster, find_cluster, forget_cluster, start_cluster  # noqa: E402
from heliograph.kafka.produce import producer_session  # noqa: E402
from heliograph.wire.batches.forward import warm_up  # noqa: E402
from tests.support.clusters.clients import SAFE_DOWNGRADE, set_feature  # noqa: E402
from tests.support.monitoring.tools import MISSING, Tools, find_tools  # noqa: E402

# Tests write records of 2023, which a broker's first round of retention, 30 s after its start, would delete.
# Compaction, and the end of a quota's window, shall come within a test's patience.
KEEP_RECORDS = {"log.retention.ms": "-1", "log.cleaner.backoff.ms": "1000", "quota.window.num": "2"}

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def level_of_our_loggers() -> Iterator[None]:
    """A command sets the level for its process; the next test must not see more lines than alone."""
    logger = logging.getLogger("heliograph")
    level = logger.level
    yield
    logger.setLevel(level)


# Producers of one transactional id tell each other apart by a random number: in one case of a thousand they do not.
_marks = itertools.count()
producer_session.random = SimpleNamespace(randint=lambda low, high: low + next(_marks) % (high - low + 1))  # type: ignore[assignment]


# Each broker is a rack of its own, named by its port; only a client that names its rack notices.
RACKS = {
    "broker.rack": "rack-{port}",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


def running_cluster(
    name: str, folder: Path, config: dict[str, str] = KEEP_RECORDS, brokers: int = 1
) -> Iterator[EmbeddedCluster]:
    """A cluster for a fixture of its own."""
    unique = f"test-{os.getpid()}-{name}"
    cluster = start_cluster(unique, data=folder, config=config, brokers=brokers)
    try:
        yield cluster
    finally:
        (find_cluster(unique) or cluster).stop()  # a test may have started a broker again
        forget_cluster(unique)


_MEMORY = Path("/dev/shm")
_NEEDED_BYTES = 8 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Let brokers keep their data in memory where there is enough: they wait for disks more than for anything else.

    Compile the kernels before there are several of us to do it at the same time.
    """
    if hasattr(config, "workerinput"):
        _take_a_share_of_the_ports(config.workerinput["workerid"], config.workerinput["workercount"])
        return
    warm_up()
    if config.option.basetemp or not _MEMORY.is_dir():
        return
    if psutil.virtual_memory().available > _NEEDED_BYTES and shutil.disk_usage(_MEMORY).free > _NEEDED_BYTES:
        config.option.basetemp = f"{_MEMORY}/heliograph-tests-{os.getpid()}"


def _take_a_share_of_the_ports(worker_id: str, worker_count: int) -> None:
    """A port is bound seconds after it was found free: nobody else here may find it meanwhile."""
    share = process.candidates()[int(worker_id.removeprefix("gw")) :: worker_count]
    free = [port for port in share if not 4100 <= port % 10_000 < 4200]  # `tests/chaos/gates.py` counts from there
    process.candidates = lambda: free


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and str(config.option.basetemp).startswith(f"{_MEMORY}/heliograph-tests-"):
        shutil.rmtree(config.option.basetemp, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix the files, always in the same way: those that start Spark are hard on the machine if all run at once."""
    items.sort(key=lambda item: hashlib.sha256(item.path.name.encode()).digest())


@pytest.fixture(autouse=True)
def no_known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide no word of this test because an earlier one used it as a password."""
    monkeypatch.setattr(known_secrets, "_known", known_secrets.KnownSecrets())


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster of one broker to read from."""
    yield from running_cluster("source", tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster of one broker to write to."""
    yield from running_cluster("target", tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Prometheus and Alertmanager; without them a test is skipped, and says why."""
    found = find_tools()
    if found is None:
        pytest.skip(MISSING)
    return found


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster of three brokers, each in a rack of its own, for tests that take one away."""
    yield from running_cluster("three", tmp_path_factory.mktemp("three"), KEEP_RECORDS | RACKS, brokers=3)


@pytest.fixture(scope="module", params=["first protocol", "second protocol"])
def both_protocols(request: pytest.FixtureRequest, target: EmbeddedCluster) -> Iterator[None]:
    """The target's transactions as before 4.0, then as since (KIP-890)."""
    if request.param == "first protocol":
        set_feature(target, "transaction.version", 0, SAFE_DOWNGRADE)
    yield
    set_feature(target, "transaction.version", 2)


@pytest.fixture
def topic() -> str:
    """A topic name nobody else uses."""
    return f"topic-{next(_numbers)}"


@pytest.fixture
def alias() -> str:
    """A cluster alias nobody else uses: progress and remote topics carry it."""
    return f"src{next(_numbers)}"
