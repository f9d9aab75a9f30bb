"""The conversation of a login: what a broker may answer, honest or not."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from heliograph.errors import AuthenticationError
from heliograph.kafka.security.connection_spec import Security
from heliograph.kafka.security.oauth import OAuthClient
from heliograph.kafka.security.sasl import Session, log_in
from heliograph.model import Address

ADDRESS = Address("b", 9092)
PLAIN = Security("SASL_SSL", "PLAIN", "mirror", "canary", written=(("sasl.jaas.config", "A.sasl.jaas.config"),))
TAKEN = Answer(error_code=0, mechanisms=[])


def carried(security: Security, *answers: Any) -> int:
    """Carry the conversation with these answers; the last is repeated."""
    steps = log_in(security, ADDRESS, 1)
    next(steps)
    try:
        for number in range(1000):
            steps.send(answers[min(number, len(answers) - 1)])
    except StopIteration as end:
        return int(end.value)
    raise AssertionError("it has no end")


def said(**fields: object) -> Answer:
    return Answer(**{"error_code": 0, "error_message": None, "auth_bytes": b"", "session_lifetime_ms": 0, **fields})


def test_the_broker_sets_how_long_a_session_lasts() -> None:
    assert carried(PLAIN, TAKEN, said(session_lifetime_ms=60_000)) == 60_000
    assert carried(PLAIN, TAKEN, Answer(error_code=0, auth_bytes=b"")) == 0  # an old broker does not know


def test_a_session_is_renewed_well_before_its_end_or_never() -> None:
    session = Session(PLAIN)
    for life_ms in (2_000, 10_000, 3_600_000):
        session.set_lifetime(life_ms, 100.0)
        assert 100 + life_ms / 2000 <= session.log_in_at <= 100 + life_ms / 1000 * 0.85
    session.set_lifetime(0, 100.0)
    assert session.log_in_at == float("inf")


def test_a_broker_that_repeats_the_password_is_not_quoted() -> None:
    with pytest.raises(AuthenticationError) as caught:
        carried(PLAIN, TAKEN, said(error_code=58, error_message="no canary here, " + "x" * 10_000))
    assert "canary" not in str(caught.value)
    assert "refused the user 'mirror' of A.sasl.jaas.config: no [hidden] here" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_conversation_without_end_is_ended(tmp_path: Any) -> None:
    (tmp_path / "token").write_text("abc")
    security = Security("SASL_SSL", "OAUTHBEARER", oauth=OAuthClient(f"file://{tmp_path}/token"))
    with pytest.raises(AuthenticationError, match="did not finish the authentication of the token of"):
        carried(security, TAKEN, said(auth_bytes=b"{}"))


def test_a_listener_without_sasl_is_distinguished_from_one_with_other_mechanisms() -> None:
    with pytest.raises(AuthenticationError, match=r"does not use SASL; check security\.protocol"):
        carried(PLAIN, Answer(error_code=34, mechanisms=[]))
    with pytest.raises(AuthenticationError, match=r"does not take sasl\.mechanism=PLAIN; it takes GSSAPI"):
        carried(PLAIN, Answer(error_code=33, mechanisms=["GSSAPI"]))
