"""The messages of the mechanisms, by the examples of their RFCs and against a server's side written here."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.errors import AuthenticationError
from heliograph.kafka.security import sasl
from heliograph.kafka.security.connection_spec import Security
from heliograph.kafka.security.sasl import OAuthBearer, Plain, Scram
from heliograph.model import Address

ADDRESS = Address("broker.example", 9092)


def test_plain_says_user_and_password() -> None:
    plain = Plain("tim", "tanstaaftanstaaf")
    assert plain.first() == b"\0tim\0tanstaaftanstaaf"
    assert plain.respond(b"") is None


def test_scram_speaks_the_example_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _size: "rOprNGfwEbeRWgbNEkqO")
    scram = Scram("SCRAM-SHA-256", "user", "pencil")
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert scram.respond(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert scram.respond(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_a_name_is_escaped_and_a_delegation_token_is_marked() -> None:
    assert b"n=a=3Db=2Cc,r=" in Scram("SCRAM-SHA-512", "a=b,c", "p").first()
    assert Scram("SCRAM-SHA-256", "id", "hmac", is_token=True).first().endswith(b",tokenauth=true")


def server_first(scram: Scram, iterations: int = 4096) -> bytes:
    nonce = scram.first().partition(b",r=")[2].partition(b",")[0]
    return b"r=%sserver,s=%s,i=%d" % (nonce, base64.b64encode(b"salt"), iterations)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@given(st.text(min_size=1), st.text(min_size=1))
def test_a_server_that_knows_the_password_is_convinced_and_convinces(mechanism: str, user: str, password: str) -> None:
    if not user.isprintable() or any("\ud800" <= letter <= "\udfff" for letter in user + password):
        return
    digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    scram = Scram(mechanism, user, password)
    bare, challenge = scram.first().removeprefix(b"n,,"), server_first(scram)
    final = scram.respond(challenge)
    assert final is not None
    without_proof, _, proof = final.rpartition(b",p=")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), b"salt", 4096)
    spoken = b",".join((bare, challenge, without_proof))
    stored = hashlib.new(digest, hmac.new(salted, b"Client Key", digest).digest()).digest()
    signature = hmac.new(stored, spoken, digest).digest()
    revealed = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.new(digest, revealed).digest() == stored
    ours = hmac.new(hmac.new(salted, b"Server Key", digest).digest(), spoken, digest).digest()
    assert scram.respond(b"v=" + base64.b64encode(ours)) is None


@pytest.mark.parametrize(
    ("challenge", "words"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "does not contain our nonce"),
        (b"nonsense", "not a valid one of SCRAM"),
        (b"\xff\xfe=", "not a valid one of SCRAM"),
        (b"s=c2FsdA==,i=4096", "not a valid one of SCRAM"),
    ],
)
def test_a_hostile_challenge_is_an_authentication_error(challenge: bytes, words: str) -> None:
    with pytest.raises(AuthenticationError, match=words):
        Scram("SCRAM-SHA-256", "u", "p").respond(challenge)


@pytest.mark.parametrize("iterations", [1, 4095, 1_000_001, 10**12])
def test_neither_a_cheap_nor_an_endless_proof_is_given(iterations: int) -> None:
    scram = Scram("SCRAM-SHA-256", "u", "p")
    with pytest.raises(AuthenticationError, match="iterations"):
        scram.respond(server_first(scram, iterations))


@pytest.mark.parametrize("words", [b"v=AAAA", b"e=invalid-proof", b"v=%%%", b""])
def test_a_server_that_cannot_prove_itself_is_rejected(words: bytes) -> None:
    scram = Scram("SCRAM-SHA-256", "u", "p")
    scram.respond(server_first(scram))
    with pytest.raises(AuthenticationError):
        scram.respond(words)


def test_a_token_goes_with_its_extensions_and_a_refusal_is_acknowledged() -> None:
    bearer = OAuthBearer("abc.def", (("logicalCluster", "lkc"),))
    assert bearer.first() == b"n,,\x01auth=Bearer abc.def\x01logicalCluster=lkc\x01\x01"
    assert bearer.respond(b"") is None
    assert bearer.respond(b'{"status":"invalid_token"}') == b"\x01"


def test_a_library_that_is_missing_where_a_task_runs_is_named() -> None:
    security = Security("SASL_SSL", "AWS_MSK_IAM", written=(("sasl.mechanism", "A.sasl.mechanism"),))
    with pytest.raises(
        AuthenticationError, match=r"A\.sasl\.mechanism=AWS_MSK_IAM needs the Python library 'botocore'"
    ):
        sasl.make_mechanism(security, ADDRESS)


class _Context:
    """A security context of two steps, as the Kerberos library would give."""

    complete = False

    def __init__(self, name: str, usage: str) -> None:
        self.asked_with = (name, usage, os.environ.get("KRB5_CLIENT_KTNAME"))
        _Context.last = self

    def step(self, token: bytes | None) -> bytes:
        self.complete = token is not None
        return b"ticket" if token is None else b""

    def unwrap(self, _token: bytes) -> types.SimpleNamespace:
        return types.SimpleNamespace(message=b"\x01\x00\x10\x00")

    def wrap(self, message: bytes, _is_hidden: bool) -> types.SimpleNamespace:
        return types.SimpleNamespace(message=b"wrapped:" + message)


class _Name:
    def __init__(self, text: str, name_type: object) -> None:
        assert name_type == "hostbased"
        self._text = text

    def canonicalize(self, _mechanism: object) -> str:
        return self._text


def test_kerberos_is_spoken_through_the_client_library(monkeypatch: pytest.MonkeyPatch) -> None:
    library = types.ModuleType("gssapi")
    library.Name, library.SecurityContext = _Name, _Context  # type: ignore[attr-defined]
    library.NameType = types.SimpleNamespace(hostbased_service="hostbased")  # type: ignore[attr-defined]
    library.MechType = types.SimpleNamespace(kerberos="krb5")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gssapi", library)
    monkeypatch.setattr(sasl, "missing_library", lambda _mechanism: None)
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
    security = Security("SASL_SSL", "GSSAPI", kerberos_service="kafka", kerberos_key_tab="/etc/mirror.keytab")
    mechanism = sasl.make_mechanism(security, ADDRESS)
    assert _Context.last.asked_with == ("kafka@broker.example", "initiate", "/etc/mirror.keytab")
    assert "KRB5_CLIENT_KTNAME" not in os.environ
    assert mechanism.first() == b"ticket"
    assert mechanism.respond(b"challenge") == b""
    last = mechanism.respond(b"layers")
    assert last is not None
    assert last.startswith(b"wrapped:\x01")
    assert mechanism.respond(b"") is None
