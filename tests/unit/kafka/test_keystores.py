"""Keys and certificates are found in whatever holds them; what is wrong is said without a secret."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given
from hypothesis import strategies as st

from heliograph.errors import KeyStoreError
from heliograph.kafka.security.jks import MAGIC, JksError, read_jks
from heliograph.kafka.security.keystores import Stores, load_into, load_key_material
from tests.support.clusters.stores import STORE_PASSWORD, Authority, Identity

KEY_PASSWORD = "key-canary"


class Shelf:
    """An authority, an identity, and all stores made of them."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.own: Identity = self.authority.issue("localhost")
        self.jks = self.own.jks_file(folder / "own.jks", KEY_PASSWORD)
        self.pkcs12 = self.own.pkcs12_file(folder / "own.pkcs12")
        self.pem = self.own.pem_file(folder / "own.pem", KEY_PASSWORD)
        self.trusted = {kind: self.authority.store(folder / f"ca.{kind}", kind) for kind in ("JKS", "PKCS12")}
        self.trusted["PEM"] = self.authority.pem_file(folder / "ca.pem")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    yield Shelf(tmp_path_factory.mktemp("stores"))


def is_own(shelf: Shelf, stores: Stores) -> bool:
    material = load_key_material(stores)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_into(context, material)
    key = load_pem_private_key(material.key_pem, None)
    assert material.chain_pem.decode() == shelf.own.chain_pem
    return bool(key.public_key() == shelf.own.key.public_key())


def test_our_key_is_found_in_every_format(shelf: Shelf) -> None:
    assert is_own(shelf, Stores(key_file=str(shelf.jks), key_store_password=STORE_PASSWORD, key_password=KEY_PASSWORD))
    assert is_own(shelf, Stores(key_file=str(shelf.pkcs12), key_store_password=STORE_PASSWORD))
    assert is_own(shelf, Stores(key_file=str(shelf.pem), key_password=KEY_PASSWORD))
    inline = Stores(key_pem=shelf.own.key_pem(KEY_PASSWORD), chain_pem=shelf.own.chain_pem, key_password=KEY_PASSWORD)
    assert is_own(shelf, inline)


@pytest.mark.parametrize("blank", [" ", "", "\r\n"])
def test_pem_text_survives_the_loss_of_its_line_breaks(shelf: Shelf, blank: str) -> None:
    key, chain = shelf.own.key_pem().replace("\n", blank), shelf.own.chain_pem.replace("\n", blank)
    assert is_own(shelf, Stores(key_pem=key, chain_pem=chain, trusted_pem=chain))


def test_our_certificate_comes_first_whatever_the_order_in_the_file(shelf: Shelf) -> None:
    certificates = shelf.own.chain_pem.split("-----BEGIN")[1:]
    turned = "".join(f"-----BEGIN{part}" for part in reversed(certificates))
    assert is_own(shelf, Stores(key_pem=shelf.own.key_pem(), chain_pem=turned))


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM"])
def test_trusted_certificates_are_found_in_every_format(shelf: Shelf, kind: str) -> None:
    stores = Stores(trusted_file=str(shelf.trusted[kind]), trusted_password=STORE_PASSWORD)
    assert load_key_material(stores).trusted_pem.decode() == shelf.authority.pem


def test_a_jks_truststore_opens_without_its_password_as_in_java(shelf: Shelf) -> None:
    stores = Stores(trusted_file=str(shelf.trusted["JKS"]))
    assert load_key_material(stores).trusted_pem.decode() == shelf.authority.pem


@pytest.mark.parametrize("kind", ["jks", "pkcs12"])
def test_a_keystore_used_as_truststore_trusts_its_certificate_not_its_issuers(shelf: Shelf, kind: str) -> None:
    stores = Stores(trusted_file=str(getattr(shelf, kind)), trusted_password=STORE_PASSWORD)
    trusted = load_key_material(stores).trusted_pem.decode()
    assert trusted == shelf.own.chain_pem.removesuffix(shelf.authority.pem)


def named(**fields: str) -> Stores:
    keys = ("ssl.keystore.location", "ssl.keystore.password", "ssl.key.password", "ssl.truststore.password")
    return Stores(written=tuple((key, f"A.{key}") for key in keys), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"key_file": "{jks}"}, "this store needs a password; set A.ssl.keystore.password"),
        ({"key_file": "{jks}", "key_store_password": "wrong-canary"}, "the password is not the store's"),
        ({"key_file": "{jks}", "key_store_password": STORE_PASSWORD}, "the password is not its key's; check A.ssl.k"),
        ({"key_file": "{pkcs12}", "key_store_password": "wrong-canary"}, "A.ssl.keystore.password is not the store's"),
        ({"key_file": "{pem}"}, "the private key is encrypted; set A.ssl.key.password"),
        ({"key_file": "{pem}", "key_password": "wrong-canary"}, "A.ssl.key.password is not its password"),
        ({"key_file": "{ca}"}, "there is no private key in it"),
        ({"key_file": "/nowhere"}, "A.ssl.keystore.location=/nowhere: the file cannot be read: No such file"),
        ({"key_file": "/dev/null"}, "the file is empty"),
        ({"key_file": "{jceks}"}, "it is a JCEKS store"),
        ({"key_file": "{text}"}, "neither JKS nor PKCS12 nor PEM"),
        ({"trusted_file": "{trusted}", "trusted_password": "wrong-canary"}, "check A.ssl.truststore.password"),
        ({"trusted_pem": "-----BEGIN CERTIFICATE-----AAAA-----END CERTIFICATE-----"}, "a certificate in it is damaged"),
        ({"trusted_pem": "canary"}, "there is no certificate in it"),
        ({"key_pem": "-----BEGIN PRIVATE KEY-----canary-----END PRIVATE KEY-----"}, "private key cannot be read"),
        ({"key_pem": "{other_key}", "chain_pem": "{chain}"}, "no certificate that belongs to the private key"),
    ],
)
def test_what_is_wrong_names_the_key_and_no_secret(
    shelf: Shelf, tmp_path: Path, fields: dict[str, str], words: str
) -> None:
    (tmp_path / "jceks").write_bytes(b"\xce\xce\xce\xce....")
    (tmp_path / "text").write_text("nothing")
    places = {"jks": shelf.jks, "pkcs12": shelf.pkcs12, "pem": shelf.pem, "ca": shelf.trusted["PEM"]}
    places |= {"jceks": tmp_path / "jceks", "text": tmp_path / "text", "trusted": shelf.trusted["JKS"]}
    texts = {"other_key": shelf.authority.issue("x").key_pem(), "chain": shelf.own.chain_pem}
    with pytest.raises(KeyStoreError) as caught:
        load_key_material(named(**{name: value.format(**places, **texts) for name, value in fields.items()}))
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)


@given(st.binary(max_size=200))
def test_damaged_jks_is_an_error_and_nothing_else(noise: bytes) -> None:
    for data in (MAGIC + noise, MAGIC + b"\0\0\0\2\0\0\0\1" + noise):
        try:
            read_jks(data, None)
        except JksError as error:
            assert str(error)


def test_every_cut_of_a_store_is_noticed(shelf: Shelf) -> None:
    data = shelf.jks.read_bytes()
    for size in range(0, len(data), 7):
        with pytest.raises(JksError):
            read_jks(data[:size], STORE_PASSWORD)
