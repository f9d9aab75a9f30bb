"""Known secrets are in no log record, trace or answer, whatever stands around them."""

from __future__ import annotations

import io
import json
import logging
import secrets
import time
from pathlib import Path

import pytest

from heliograph.cli.log_output import hide_secrets_in_logs
from heliograph.config.effective.connect_config import ConnectorConfig
from heliograph.config.keys import client_keys
from heliograph.config.resolve.jaas import parse_jaas
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.redaction import trace_of, unexpected
from heliograph.config.resolve.settings import Settings
from heliograph.config.secrets import known_secrets
from heliograph.config.secrets.known_secrets import hide_known, remember_secret, remember_token
from heliograph.errors import ConfigError, UnreachableError
from heliograph.executor.contract.task_spec import secrets_of
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.mirror.policy.replication_policy import make_policy
from heliograph.model import Flow
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import guarded_worker, login_lines, rest_worker

PROVIDERS = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


@pytest.fixture
def canary() -> str:
    return f"S3cret-{secrets.token_hex(8)}"


class Machine:
    """Every variable and entry is the canary."""

    def __init__(self, canary: str) -> None:
        self._canary = canary

    def variable(self, _name: str) -> str | None:
        return self._canary

    def read_text(self, _path: str) -> str | None:
        return f"password={self._canary}\nregion={self._canary}\n"


def test_a_placeholder_of_a_connector_is_shown_in_place_of_its_value(canary: str) -> None:
    Resolver(Machine(canary), PROVIDERS).declared_only().resolve("topics", "a,${file:/s:region}")
    assert hide_known(f"no topic {canary}.x") == "no topic ${file:/s:region}.x"


@pytest.mark.parametrize(
    ("key", "value", "is_kept"),
    [
        ("A.bootstrap.servers", "${file:/s:region}", False),
        ("A.bootstrap.servers", "${REGION}", False),
        ("replication.policy.class", "${file:/s:password}:X", True),
        ("topics", "${KAFKA_PASSWORD}", True),
        ("A.ssl.key.password", "${X}", True),
    ],
)
def test_of_an_operators_file_only_what_is_called_a_secret_is_hidden(
    canary: str, key: str, value: str, is_kept: bool
) -> None:
    Resolver(Machine(canary), {}).resolve(key, value)
    assert (canary not in hide_known(f"x {canary}")) is is_kept


def test_literal_passwords_are_known_once_they_are_read(canary: str) -> None:
    assert Settings({"ssl.key.password": canary})[client_keys.SSL_KEY_PASSWORD] == canary
    assert hide_known(f"<{canary}>") == "<[hidden]>"
    parse_jaas(f'x required username="u" password="{canary}-2" clientSecret={canary}-3;')
    assert hide_known(f"{canary}-2 {canary}-3") == "[hidden] [hidden]"


def test_a_part_of_a_secret_does_not_spoil_the_whole(canary: str) -> None:
    remember_secret(canary, "part")
    remember_secret(f"{canary}/and-more", "whole")
    assert hide_known(f"{canary}/and-more") == "whole"


@pytest.mark.parametrize("value", ["", "abc", "12345", " pw  ", "${file:/s:password}"])
def test_short_values_and_placeholders_are_not_kept(value: str) -> None:
    remember_secret(value, "X")
    assert hide_known(f"text {value} text") == f"text {value} text"


def test_a_known_word_does_not_keep_other_secrets_from_being_recognised() -> None:
    remember_secret("passphrase", "[hidden]")
    assert "hunter2" not in unexpected(KeyError("passphrase=hunter2"))


def test_the_number_and_length_of_known_values_are_bounded() -> None:
    most = known_secrets._MOST
    for number in range(most + 10):
        remember_secret(f"secret-{number}", "X")
    assert len(known_secrets._known) == most
    assert hide_known(f"secret-{most + 9}") == "X"


def test_tokens_do_not_take_the_places_of_passwords(canary: str) -> None:
    remember_secret(canary, "[hidden]")
    for number in range(5_000):
        remember_token(f"token-{number}")
    assert hide_known(f"{canary} token-4999") == "[hidden] [hidden]"
    assert len(known_secrets._known) == known_secrets._MOST_TOKENS + 1


def test_a_long_text_is_looked_through_quickly_whatever_is_known() -> None:
    """On REST's event loop too: one caller can make thousands of values known and have a megabyte shown."""
    parse_jaas("x required " + " ".join(f'password{number}="secretvalue{number}"' for number in range(5_000)) + ";")
    began = time.thread_time()
    hide_known("x" * 1_000_000)
    assert time.thread_time() - began < 1.0  # 4 to 12 s without a limit


def test_no_beginning_of_a_secret_is_left_where_a_text_is_cut(canary: str) -> None:
    whole = canary * 200
    remember_secret(whole, "[hidden]")
    for start in range(0, 2 * known_secrets._LONGEST, 997):
        shown = hide_known("-" * (known_secrets._LONGEST_TEXT + start - len(whole)) + whole * 3 + "-" * 50_000)
        assert canary not in shown
        assert shown.endswith("...")


def test_literals_do_not_drive_out_what_placeholders_stand_for(canary: str) -> None:
    remember_secret(canary, "${file:/s:password}")
    for number in range(known_secrets._MOST + 10):
        remember_secret(f"literal-{number}", "[hidden]")
    assert hide_known(canary) == "${file:/s:password}"


def test_no_choice_of_secrets_makes_a_text_slow_to_look_through() -> None:
    """A caller chooses both. Compared one by one with a text of a megabyte, 4,096 values took ten seconds."""

    def seconds_with(count: int) -> float:
        run = "a" * 45
        for number in range(count):
            remember_secret(f"{run}b{run}{number:04}", "[hidden]")
            remember_secret(f"{number:04}b{run}", "[hidden]")
        begin = time.process_time()
        assert hide_known("a" * 200_000, most=200_000) == "a" * 200_000
        return time.process_time() - begin

    few, many = seconds_with(32), seconds_with(2_000)
    assert many < 8 * few + 0.5


def test_overlapping_secrets_are_hidden_as_a_whole() -> None:
    remember_secret("abcdefgh", "[one]")
    remember_secret("efghijklm", "[two]")
    assert hide_known("x abcdefghijklm y") == "x [two] y"


def test_a_secret_of_any_length_is_hidden_also_where_a_text_is_cut() -> None:
    long = secrets.token_hex(3_000)
    remember_secret(long, "[hidden]")
    assert not set(hide_known(f"text {long} end").split()) - {"text", "[hidden]" * 6, "end"}
    assert hide_known(f"x {long}", most=1_000) == "x [hidden]..."
    assert hide_known("x" * 50, most=10) == "x" * 10 + "..."


# --- logs -----------------------------------------------------------------------------------------
def logged(write: object) -> str:
    """What a handler with the filter writes."""
    stream = io.StringIO()
    logger = logging.getLogger(f"{__name__}.logged")
    logger.handlers, logger.propagate = [logging.StreamHandler(stream)], False
    hide_secrets_in_logs(logger)
    write(logger)  # type: ignore[operator]
    return stream.getvalue()


def test_a_log_record_is_written_without_secrets(canary: str) -> None:
    remember_secret(canary, "${env:PW}")

    def write(logger: logging.Logger) -> None:
        logger.warning("message %s and %d %%", canary, 3)
        logger.warning("literal %s", "x", stack_info=True)
        try:
            {}[f"{canary} at https://u:hunter2@host"]
        except KeyError:
            logger.exception("it failed")

    text = logged(write)
    assert "message ${env:PW} and 3 %" in text
    assert "KeyError: '${env:PW} at https://[hidden]@host'" in text
    assert canary not in text
    assert text.count("Traceback") == 1


def test_a_log_record_that_cannot_be_formatted_raises_nothing(canary: str) -> None:
    remember_secret(canary, "[hidden]")
    text = logged(lambda logger: logger.warning("%d of them", canary))
    assert text == "%d of them (its arguments cannot be shown)\n"


def test_no_caller_hides_what_it_did(tmp_path: Path) -> None:
    """A tenant had its own name and that of its connector as passwords, and the log did not show who had deleted it."""
    remember_secret("REST, user tenant", "[hidden]")
    remember_secret("/connectors/tenant-1", "[hidden]")
    stream = io.StringIO()
    logger = logging.getLogger("heliograph.web")
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    hide_secrets_in_logs(logger)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        with guarded_worker(login_lines(tmp_path, "tenant")) as worker:
            worker.log_in("tenant").ask("DELETE", "/connectors/tenant-1")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert "REST, user tenant: DELETE /connectors/tenant-1\n" in stream.getvalue()


def test_crash_reports_hide_known_secrets(canary: str) -> None:
    remember_secret(canary, "[hidden]")
    with pytest.raises(KeyError) as raised:
        {}[canary]
    assert canary not in unexpected(raised.value) + trace_of(raised.value)


def test_a_task_knows_the_secrets_of_its_payload() -> None:
    security = Security(protocol="SASL_PLAINTEXT", username="the-user", password="the-password", trusted_pem="long")
    spec = ClusterSpec("A", (), security, 1)
    assert set(secrets_of((spec, 1, "x"))) == {"the-password"}
    assert list(secrets_of(ClusterSpec("A", (), Security(), 1))) == []


# --- REST -----------------------------------------------------------------------------------------
def test_answers_and_traces_are_served_without_secrets(canary: str) -> None:
    remember_secret(canary, "${file:/s:password}")

    class Failing(FakeHerder):
        def topics(self, _name: str) -> list[str]:
            raise UnreachableError(f"{canary}:9092 does not answer")

    herder = Failing()
    herder.create("c", {"connector.class": "MirrorHeartbeat", "name": "c"}, None)
    herder.traces["c"] = f"{canary}:9092 does not answer"
    with rest_worker(herder) as worker:
        assert worker.ask("GET", "/connectors/c/topics").body["message"] == "${file:/s:password}:9092 does not answer"
        assert worker.ask("GET", "/connectors/c/status").body["connector"]["trace"].startswith("${file:/s:password}")


@pytest.mark.parametrize("encoded", [False, True])
def test_answers_do_not_show_whether_a_caller_has_guessed_a_secret(canary: str, encoded: bool) -> None:
    """Replaced, the one right guess of 60,000 in a request stood out, with the path of another's file."""
    remember_secret(canary, "${file:/other/s:password}")
    guesses = f"first-guess {canary} {canary.upper()} last-guess"
    body = json.dumps({"name": "c", "config": {"connector.class": "MirrorHeartbeat", "tasks.max": guesses}})
    if encoded:
        body = body.replace(canary, "".join(f"\\u{ord(letter):04x}" for letter in canary))
    with rest_worker() as worker:
        reply = worker.send("POST", "/connectors", body.encode(), {"content-type": "application/json"})
        assert reply.status == 400
        assert guesses in reply.body["message"]
        path = "".join(f"%{ord(letter):02x}" for letter in canary) if encoded else canary
        assert worker.ask("GET", f"/connectors/{path}").body["message"] == f"Connector {canary} not found"


def test_traces_do_not_show_whether_a_writer_has_guessed_a_secret(canary: str) -> None:
    remember_secret(canary, "${file:/other/s:password}")
    remember_secret("own-password", "[hidden]")
    herder = FakeHerder()
    config = {
        "connector.class": "MirrorHeartbeat",
        "name": "c",
        "target.cluster.sasl.mechanism": f"password={canary}",
        "target.cluster.sasl.jaas.config": 'x required username="u" password="own-password";',
    }
    herder.create("c", config, None)
    herder.traces["c"] = f"'password={canary}' is not supported; own-password"
    with rest_worker(herder) as worker:
        trace = worker.ask("GET", "/connectors/c/status").body["connector"]["trace"]
    assert trace == f"'password={canary}' is not supported; [hidden]"


def test_a_long_message_is_cut() -> None:
    with rest_worker() as worker:
        config = {"connector.class": "MirrorHeartbeat", "tasks.max": "x" * 1_000_000}
        assert len(worker.ask("POST", "/connectors", {"name": "c", "config": config}).body["message"]) < 20_000


# --- sentences ------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", ["${file:/s:password}:X", "heliograph.mirror.${file:/s:password}:X"])
def test_a_module_is_named_as_it_was_written(canary: str, value: str) -> None:
    """In a file, which may load any module, and in a connector."""
    config = {
        "connector.class": "MirrorSource",
        "source.cluster.alias": "A",
        "replication.policy.class": value,
    }
    listed = PROVIDERS | {"heliograph.plugin.packages": canary}
    for is_limited in (True, False):
        made = ConnectorConfig("c", config, listed, Resolver(Machine(canary), listed), is_limited=is_limited)
        with pytest.raises(ConfigError, match="cannot be imported") as raised:
            make_policy(made.settings(Flow("A", "B")))
        assert value.rpartition(":")[0] in str(raised.value)
        assert canary not in str(raised.value)
