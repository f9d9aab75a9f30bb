"""Tokens are requested by OIDC, kept while they are valid, renewed in time, and never disclosed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.errors import AuthenticationError, UnreachableError
from heliograph.kafka.security.keystores import Stores
from heliograph.kafka.security.oauth import OAuthClient, RefreshRule, TokenKeeper, fetch_token
from tests.support.clusters.stores import Authority
from tests.support.clusters.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer, token_server


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with token_server() as running:
        yield running


def client_of(server: TokenServer, **fields: object) -> OAuthClient:
    quick = {"retry_backoff_ms": 10, "retry_backoff_max_ms": 500}
    return OAuthClient(server.url, CLIENT_ID, CLIENT_SECRET, **quick, **fields)  # type: ignore[arg-type]


def test_a_token_is_asked_for_once_and_kept(server: TokenServer) -> None:
    keeper, client = TokenKeeper(), client_of(server, scope="kafka read")
    first = keeper.token(client)
    assert keeper.token(client) is first
    assert server.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka read"]}]
    assert first.value not in repr(first)
    keeper.forget(client)
    keeper.token(client)
    assert len(server.asked) == 2


def test_a_token_that_is_due_is_renewed_and_the_old_one_serves_while_that_fails(server: TokenServer) -> None:
    server.life_s = 60
    keeper, client = TokenKeeper(), client_of(server, refresh=RefreshRule(0.02, 0.0, 0, 0))
    first = keeper.token(client)
    assert first.due_at < first.ends_at
    time.sleep(max(0.0, first.due_at - time.time()) + 0.01)
    server.issues = [503] * 100
    assert keeper.token(client) is first
    server.issues.clear()
    second = keeper.token(client)
    assert second.ends_at > first.ends_at


def test_a_failing_endpoint_is_requested_again(server: TokenServer) -> None:
    server.issues = [500, 503]
    assert fetch_token(client_of(server)).value
    assert len(server.asked) == 3


def test_an_endpoint_that_stays_away_is_unreachable(server: TokenServer) -> None:
    server.issues = [503] * 1000
    with pytest.raises(
        UnreachableError, match=r"127\.0\.0\.1 of sasl\.oauthbearer\.token\.endpoint\.url failed \(HTTP"
    ):
        fetch_token(client_of(server, origin="sasl.oauthbearer.token.endpoint.url"))


def test_a_refusal_is_one_sentence_without_the_secret(server: TokenServer) -> None:
    server.secret = "another"
    with pytest.raises(AuthenticationError) as caught:
        fetch_token(client_of(server, secret_origin="A.sasl.jaas.config"))
    assert str(caught.value) == (
        "the token endpoint 127.0.0.1 refused the client 'mirror' (HTTP 401: invalid_client); check A.sasl.jaas.config."
    )


def test_a_redirect_is_not_followed(server: TokenServer) -> None:
    """It could lead to an address that the worker does not list."""
    with token_server() as other:
        server.location = other.url
        with pytest.raises(AuthenticationError, match=r"\(HTTP 302\)"):
            fetch_token(client_of(server))
        assert (len(server.asked), other.asked) == (1, [])


def test_text_of_a_server_that_is_no_token_endpoint_is_not_repeated(server: TokenServer) -> None:
    server.secret, server.error = "another", "AKIA-internal-word"
    with pytest.raises(AuthenticationError) as caught:
        fetch_token(client_of(server))
    assert "(HTTP 401)" in str(caught.value)
    assert "AKIA" not in str(caught.value)


def test_an_endpoint_of_a_placeholder_is_shown_as_it_was_written(server: TokenServer) -> None:
    server.secret = "another"
    with pytest.raises(AuthenticationError, match=r"endpoint \$\{env:IDP\} refused"):
        fetch_token(client_of(server, written="${env:IDP}"))


def test_a_token_that_has_ended_is_not_used(server: TokenServer) -> None:
    server.life_s = -5
    with pytest.raises(AuthenticationError, match="expired token; compare the clocks"):
        fetch_token(client_of(server))


def test_the_endpoints_certificate_is_checked_by_the_options_of_the_login_module(tmp_path: Path) -> None:
    authority = Authority()
    trusted = Stores(trusted_file=str(authority.pem_file(tmp_path / "ca.pem")))
    with token_server(authority.issue("127.0.0.1").pem_file(tmp_path / "web.pem")) as server:
        assert fetch_token(client_of(server, tls=trusted)).value
        with pytest.raises(AuthenticationError, match=r"certificate of the token endpoint 127\.0\.0\.1 is not trusted"):
            fetch_token(client_of(server))


def test_a_file_is_read_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    client, keeper = OAuthClient(f"file://{file}"), TokenKeeper()
    file.write_text("first\n")
    assert keeper.token(client).value == "first"
    file.write_text("second\n")
    assert keeper.token(client).value == "second"
    file.unlink()
    with pytest.raises(AuthenticationError, match="cannot be read: No such file"):
        keeper.token(client)


@pytest.mark.parametrize("content", ["root:x:0:0:root:/root:/bin/bash\n", "two words", "", "a\x01b", "é"])
def test_what_is_no_token_goes_to_no_broker(content: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content)
    with pytest.raises(AuthenticationError, match="its content is not a token") as caught:
        fetch_token(OAuthClient(f"file://{tmp_path}/file"))
    assert not content.strip() or content.strip() not in str(caught.value)


@given(
    st.floats(0.5, 1.0),
    st.floats(0.0, 0.25),
    st.integers(0, 900),
    st.integers(0, 3600),
    st.floats(1, 10**6),
    st.floats(0, 10**6),
)
def test_a_token_is_due_before_its_end(
    factor: float, jitter: float, period: int, buffer: int, left: float, before: float
) -> None:
    now = 1_800_000_000.0
    due = RefreshRule(factor, jitter, period, buffer).due_at(now, now - before, now + left)
    assert due <= now + left + 1e-3
    if left > period + buffer:
        assert now + period - 1e-3 <= due <= now + left - buffer + 1e-3


def test_the_secret_is_url_encoded_where_that_is_wanted(server: TokenServer) -> None:
    server.secret = "a+b%2F"
    assert fetch_token(OAuthClient(server.url, CLIENT_ID, "a b/", encodes_header=True)).value
    with pytest.raises(AuthenticationError):
        fetch_token(OAuthClient(server.url, CLIENT_ID, "a b/"))
