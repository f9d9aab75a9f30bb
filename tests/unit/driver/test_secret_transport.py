"""Secrets go to executors only where Spark encrypts the way, or the user says that it need not."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest

from heliograph.cli.inputs import spark_pairs
from heliograph.driver.spark.secret_transport import authentication, carries_secrets, encrypts
from heliograph.driver.spark.spark_engine import LaunchOptions, SparkEngine
from heliograph.driver.spark.spark_session import SparkSettings
from heliograph.errors import ConfigError, EngineError
from heliograph.executor.contract.task_spec import SyncsSpec, TaskSpec
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.model import Flow

PLAIN = ClusterSpec("A", (), Security())
SECRET = ClusterSpec("A", (), Security(protocol="SASL_SSL", mechanism="PLAIN", username="u", password="canary"))
TASK = TaskSpec("t-0", Flow("A", "B"), PLAIN, PLAIN, (), "c", "offsets", 1)
ENCRYPTED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.mark.parametrize(
    ("task", "is_secret"),
    [
        (TASK, False),
        (replace(TASK, source=SECRET), True),
        (replace(TASK, target=SECRET), True),
        (replace(TASK, source_offsets=SECRET), True),
        (replace(TASK, syncs=SyncsSpec(SECRET, "syncs")), True),
        (replace(TASK, source=ClusterSpec("A", (), Security("SSL", key_password="canary"))), True),
        (replace(TASK, source=ClusterSpec("A", (), Security("SSL", trusted_pem="x", written=(("a", "b"),)))), False),
    ],
)
def test_a_task_carries_secrets_where_a_client_of_it_logs_in(task: TaskSpec, *, is_secret: bool) -> None:
    assert carries_secrets(task) is is_secret


@pytest.mark.parametrize(
    ("conf", "is_encrypted"),
    [
        ({}, False),
        ({"spark.authenticate": "true"}, False),
        ({"spark.network.crypto.enabled": "true"}, False),
        ({"spark.ssl.rpc.enabled": "true"}, False),
        ({"spark.authenticate": "true", "spark.ssl.enabled": "true"}, False),
        (ENCRYPTED, True),
        ({"spark.authenticate": "TRUE", "spark.ssl.rpc.enabled": "true"}, True),
    ],
)
def test_spark_must_know_its_own_and_encrypt(conf: dict[str, str], *, is_encrypted: bool) -> None:
    assert encrypts(conf.get) is is_encrypted  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("master", "settings"),
    [
        ("local", {"spark.authenticate": "true"}),
        ("local[4]", {"spark.authenticate": "true"}),
        ("yarn", ENCRYPTED),
        ("k8s://https://api:6443", ENCRYPTED),
        ("spark://master:7077", {}),
    ],
)
def test_spark_authenticates_by_default_where_its_parts_can_share_a_secret(
    master: str, settings: dict[str, str]
) -> None:
    assert authentication(master, {}.get) == settings  # type: ignore[arg-type]
    for said in ("false", "true"):
        assert authentication(master, {"spark.authenticate": said}.get) == {}  # type: ignore[arg-type]


def test_a_secret_is_made_for_executors_that_are_our_children() -> None:
    one, other = (authentication("local-cluster[1,1,1024]", {}.get) for _ in range(2))  # type: ignore[arg-type]
    secret = one.pop("spark.authenticate.secret")
    assert len(secret) >= 64
    assert secret != other["spark.authenticate.secret"]
    assert one == ENCRYPTED
    own = {"spark.authenticate.secret": "the user's", "spark.ssl.rpc.enabled": "true"}
    assert authentication("local-cluster[1,1,1024]", own.get) == {"spark.authenticate": "true"}  # type: ignore[arg-type]


class Driver:
    """A Spark that would not encrypt."""

    encrypts_secrets = False


def test_a_task_with_secrets_is_not_started_on_such_a_spark() -> None:
    engine = SparkEngine(Driver(), LaunchOptions(lease_timeout_ms=1000))  # type: ignore[arg-type]
    with pytest.raises(EngineError, match=r"spark.authenticate=true.*unencrypted.secrets.allowed=true") as refused:
        engine.start(replace(TASK, source=SECRET), lambda _spec, _report: None, lambda _end: None)
    assert "canary" not in str(refused.value)


def test_only_flows_that_allow_it_send_secrets_on_such_a_spark() -> None:
    engine = SparkEngine(Driver(), LaunchOptions(allows_unencrypted_secrets=True))  # type: ignore[arg-type]
    engine._lease_server = Mock(side_effect=ZeroDivisionError("it would be started"))  # type: ignore[method-assign]
    spec = replace(TASK, source=SECRET)
    with pytest.raises(ZeroDivisionError):
        engine.start(spec, lambda _spec, _report: None, lambda _end: None)
    with pytest.raises(EngineError, match="plain text"):
        engine.start(spec, lambda _spec, _report: None, lambda _end: None, LaunchOptions())


@pytest.mark.parametrize(
    ("master", "is_local"),
    [("local", True), ("local[4]", True), ("local[*]", True), ("local-cluster[1,1,512]", False), ("yarn", False)],
)
def test_only_executors_inside_of_the_driver_are_local(master: str, *, is_local: bool) -> None:
    assert SparkSettings(master).is_local is is_local


@pytest.mark.parametrize(
    "name", ["spark.authenticate.secret", "spark.ssl.keyPassword", "spark.hadoop.fs.s3a.secret.key"]
)
def test_a_secret_of_spark_is_refused_on_the_command_line(name: str) -> None:
    with pytest.raises(ConfigError, match=r"spark-defaults\.conf") as refused:
        spark_pairs([f"{name}=canary"])
    assert "canary" not in str(refused.value)
    with pytest.raises(ConfigError, match="--master"):
        spark_pairs(["spark.master=spark://elsewhere:7077"])
    assert spark_pairs(["spark.authenticate.secret.file=/f"]) == {"spark.authenticate.secret.file": "/f"}
