"""When certificates end: read in the background, again after a while, and never with a part of a key."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.config.effective.rest_config import RestListener
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.clusters import certificates
from heliograph.driver.clusters.certificates import (
    Certificates,
    NamedClient,
    clients_of,
    listeners_of,
    read_certificates,
)
from heliograph.errors import ConfigError
from heliograph.kafka.security.keystores import KeyMaterial
from heliograph.status.process_snapshot import Certificate
from tests.support.clusters.stores import STORE_PASSWORD, Authority
from tests.support.config_files import FakeLookup, minimal
from tests.support.runs.copying import wait_for

if TYPE_CHECKING:
    import pytest

HTTPS = (RestListener("127.0.0.1", 0, is_https=True),)


def ends(found: Iterable[Certificate]) -> dict[tuple[str, str, str], float]:
    return {(each.place, each.role, each.subject): each.not_after for each in found}


def test_the_certificates_of_each_clusters_clients_are_read(tmp_path: Path) -> None:
    authority = Authority("ca")
    own = authority.issue(name="mirror", days=7)
    store = own.pkcs12_file(tmp_path / "own.p12")
    trusted = tmp_path / "ca.pem"
    trusted.write_text(own.chain_pem.partition("-----END CERTIFICATE-----\n")[2])
    config = load(
        minimal(
            "A.security.protocol=SSL",
            f"A.ssl.keystore.location={store}",
            f"A.ssl.keystore.password={STORE_PASSWORD}",
            f"A.ssl.truststore.location={trusted}",
        ),
        FakeLookup(),
    )
    found = read_certificates(clients_of(config, config.flows))
    end = own.certificate.not_valid_after_utc.timestamp()
    above = authority.certificate.not_valid_after_utc.timestamp()
    assert ends(found) == {
        ("A", "own", "CN=mirror"): end,
        ("A", "own", "CN=ca"): above,
        ("A", "trusted", "CN=ca"): above,
    }
    assert "PRIVATE" not in repr(found)


def listener_lines(folder: Path, *issued: tuple[str, int]) -> dict[str, str]:
    authority = Authority("ca")
    for name, days in issued:
        authority.issue(name="worker", days=days).pem_file(folder / f"{name}.pem")
    return {"listeners.https.ssl.keystore.location": str(folder / f"{issued[0][0]}.pem")}


def test_those_of_https_listeners_are_read_and_plain_ones_have_none(tmp_path: Path) -> None:
    raw = listener_lines(tmp_path, ("one", 5))
    resolver = Resolver(FakeLookup(), raw)
    assert ("rest", "own", "CN=worker") in ends(read_certificates(listeners_of(raw, resolver, HTTPS)))
    assert list(listeners_of(raw, resolver, [RestListener("127.0.0.1", 0)])) == []


def test_of_the_certificates_with_one_subject_the_one_that_matters_counts(tmp_path: Path) -> None:
    """Of a truststore's the last to end, since a new one stands beside the old; of several clients' the first."""
    authority = Authority("ca")
    old, new = (authority.issue(name="ca2", days=days) for days in (5, 50))
    both, first = tmp_path / "both.pem", tmp_path / "first.pem"
    text = {
        each: each.chain_pem.partition("-----END CERTIFICATE-----\n")[0] + "-----END CERTIFICATE-----\n"
        for each in (old, new)
    }
    both.write_text(text[old] + text[new])
    first.write_text(text[old])

    def end_of(*files: Path) -> float:
        lines = [
            f"A.{role}.ssl.truststore.location={file}"
            for role, file in zip(("consumer", "producer"), files, strict=False)
        ]
        config = load(minimal("security.protocol=SSL", f"ssl.truststore.location={files[0]}", *lines), FakeLookup())
        return ends(read_certificates(clients_of(config, config.flows)))["A", "trusted", "CN=ca2"]

    assert end_of(both) == new.certificate.not_valid_after_utc.timestamp()
    assert end_of(both, first) == old.certificate.not_valid_after_utc.timestamp()


def test_a_store_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    raw = listener_lines(tmp_path, ("one", 5))
    good = next(listeners_of(raw, Resolver(FakeLookup(), raw), HTTPS))
    bad = {"listeners.https.ssl.keystore.location": str(tmp_path / "missing.pem")}

    def refused() -> object:
        raise ConfigError("a secret is missing.")

    clients = [
        NamedClient("x", refused),  # type: ignore[arg-type]
        next(listeners_of(bad, Resolver(FakeLookup(), bad), HTTPS)),
        good,
    ]
    assert ("rest", "own", "CN=worker") in ends(read_certificates(clients))


def test_a_certificate_that_cannot_be_parsed_hides_no_other_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority("ca")
    good = authority.issue(name="broker", days=7).chain_pem.encode()
    odd = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    read = KeyMaterial(chain_pem=b"", key_pem=b"", trusted_pem=odd + b"# a comment\n" + good)
    monkeypatch.setattr(certificates, "load_key_material", lambda _stores: read)
    config = load(minimal("security.protocol=SSL"), FakeLookup())
    for _reading in range(2):
        found = ends(read_certificates(clients_of(config, config.flows)))
        assert {("A", "trusted", "CN=broker"), ("B", "trusted", "CN=broker")} <= set(found)
    assert len(caplog.messages) == 2, "one for each place"
    assert all("cannot be read" in message for message in caplog.messages)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_renewed_file_is_noticed_and_files_are_not_read_at_each_scrape(tmp_path: Path) -> None:
    raw = listener_lines(tmp_path, ("one", 5), ("two", 90))
    clock, reads = Clock(), []

    def clients() -> Iterable[NamedClient]:
        reads.append(1)
        return listeners_of(raw, Resolver(FakeLookup(), raw), HTTPS)

    certificates = Certificates(clients, clock)
    assert certificates.latest() == (), "the first reader does not wait"
    wait_for(certificates.latest)
    first = ends(certificates.latest())["rest", "own", "CN=worker"]
    (tmp_path / "two.pem").replace(tmp_path / "one.pem")
    clock.now += 299
    assert ends(certificates.latest())["rest", "own", "CN=worker"] == first
    assert len(reads) == 1
    clock.now += 2
    wait_for(lambda: ends(certificates.latest())["rest", "own", "CN=worker"] > first)
    assert len(reads) == 2


def test_a_file_that_takes_for_ever_delays_nobody_and_its_certificates_become_unknown(tmp_path: Path) -> None:
    raw = listener_lines(tmp_path, ("one", 5))
    clock, hangs, is_over, reads = Clock(), threading.Event(), threading.Event(), []

    def clients() -> Iterable[NamedClient]:
        reads.append(1)
        if hangs.is_set():
            is_over.wait(60)
        return listeners_of(raw, Resolver(FakeLookup(), raw), HTTPS)

    certificates = Certificates(clients, clock)
    wait_for(certificates.latest)
    hangs.set()
    clock.now += 400
    assert certificates.latest()
    clock.now += 600
    assert certificates.latest() == ()
    assert len(reads) == 2, "one thread waits, not one more for each scrape"
    is_over.set()
