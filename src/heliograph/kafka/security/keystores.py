"""Reads keys and certificates from JKS, PKCS12 and PEM files, and from PEM text inside a configuration.

The first bytes of a file decide its format, whatever `ssl.keystore.type` says: Java reads JKS and PKCS12 in each
other's place too, and users rely on it. Files are read at each call, so the next connection uses a renewed one.
OpenSSL takes a key only from a file, so `load_into` passes it a temporary one in memory.

Errors are `KeyStoreError`s that name the key of the configuration, never a password or a part of a private key.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates, load_pkcs12
from cryptography.x509.oid import NameOID

from heliograph.diagnostics import Mention, Text
from heliograph.errors import KeyStoreError
from heliograph.kafka.security.jks import MAGIC, JksError, decrypt_key, read_jks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


TRUSTSTORE_LOCATION, TRUSTSTORE_CERTIFICATES = "ssl.truststore.location", "ssl.truststore.certificates"
TRUSTSTORE_PASSWORD = "ssl.truststore.password"  # noqa: S105  (the name of a key)
KEYSTORE_LOCATION, KEYSTORE_KEY = "ssl.keystore.location", "ssl.keystore.key"
KEYSTORE_CHAIN, KEYSTORE_PASSWORD = "ssl.keystore.certificate.chain", "ssl.keystore.password"
KEY_PASSWORD = "ssl.key.password"  # noqa: S105
NO_SECRET: dict[str, bool] = {"is_secret": False}
"""Metadata of a field that `repr` omits only because it is long."""
_MAX_STORE_BYTES = 16 << 20
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_DER_SEQUENCE = 0x30
_NAMED_BY_JAVA = {
    *(NameOID.COMMON_NAME, NameOID.COUNTRY_NAME, NameOID.LOCALITY_NAME, NameOID.STATE_OR_PROVINCE_NAME),
    *(NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.STREET_ADDRESS),
    *(NameOID.DOMAIN_COMPONENT, NameOID.USER_ID),
}
_PEM_LINE = re.compile(r"-----(BEGIN|END) ([A-Z0-9 ]++)-----")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The places of our key and of the certificates we trust, as in the `ssl.*` keys; empty means not set.

    `written` maps keys to their names in the user's file, for messages.
    """

    trusted_file: str = ""
    trusted_password: str = field(default="", repr=False)
    trusted_pem: str = field(default="", repr=False, metadata=NO_SECRET)
    key_file: str = ""
    key_store_password: str = field(default="", repr=False)
    key_pem: str = field(default="", repr=False)
    chain_pem: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    written: tuple[tuple[str, str], ...] = field(default=(), repr=False, metadata=NO_SECRET)

    def named(self, key: str) -> str:
        """Return a key's name as the user wrote it."""
        return dict(self.written).get(key, key)

    @property
    def has_trusted(self) -> bool:
        """Return whether there is a truststore; without one the authorities that this machine trusts count."""
        return bool(self.trusted_file or self.trusted_pem)

    @property
    def has_key(self) -> bool:
        """Return whether we have a certificate of our own."""
        return bool(self.key_file or self.key_pem)


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """The content of the stores in PEM: our key (not encrypted), our certificate with its issuers, those we trust."""

    key_pem: bytes = field(default=b"", repr=False)
    chain_pem: bytes = b""
    trusted_pem: bytes = b""


def load_key_material(stores: Stores) -> KeyMaterial:
    """Read the stores; raise a KeyStoreError that names the key of the configuration and the reason."""
    key, chain = _own_key(stores)
    trusted = _trusted(stores)
    key_pem = b"" if key is None else key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyMaterial(key_pem, _as_pem(chain), _as_pem(trusted))


def own_subject(stores: Stores) -> str:
    """Return the subject of our certificate, as a broker without mapping rules spells it.

    Raises KeyStoreError also if the subject has parts without a name in Java, which writes those as numbers.
    """
    if stores.chain_pem:
        name, chain = KEYSTORE_CHAIN, _pem_certificates(stores.chain_pem, stores.named(KEYSTORE_CHAIN))
    else:
        name, (_key, chain) = KEYSTORE_LOCATION, _own_key(stores)
    if not chain:
        raise KeyStoreError("there is no certificate of our own.", stores.named(name))
    subject = chain[0].subject
    if any(part.oid not in _NAMED_BY_JAVA for part in subject):
        raise KeyStoreError("the certificate's subject has parts that brokers spell in numbers.", stores.named(name))
    return subject.rfc4514_string()


def load_into(context: ssl.SSLContext, material: KeyMaterial) -> None:
    """Give a TLS context our key and the certificates it trusts."""
    if material.trusted_pem:
        context.load_verify_locations(cadata=material.trusted_pem.decode("ascii"))
    if not material.key_pem:
        return
    once = secrets.token_hex(32)
    key = load_pem_private_key(material.key_pem, None, unsafe_skip_rsa_key_validation=True)  # it was checked above
    hidden = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(once.encode("ascii")))
    with _temporary_file(hidden + material.chain_pem) as path:
        try:
            context.load_cert_chain(path, password=once)
        except ssl.SSLError as error:
            reason = error.reason or "OpenSSL gives no reason"
            raise KeyStoreError(f"the key and its certificate cannot be used: {reason}") from None


@contextmanager
def _temporary_file(content: bytes) -> Iterator[str]:
    """Yield the path of a temporary file with the content, in memory if the system supports it."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("key")
        try:
            os.write(number, content)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    with tempfile.NamedTemporaryFile() as file:  # readable only by its owner
        file.write(content)
        file.flush()
        yield file.name


# --- our own key ------------------------------------------------------------------------------------------------------


def _own_key(stores: Stores) -> tuple[PrivateKeyTypes | None, list[x509.Certificate]]:
    if stores.key_pem:
        name = stores.named(KEYSTORE_KEY)
        key = _pem_key(stores, stores.key_pem, name)
        chain = _pem_certificates(stores.chain_pem, stores.named(KEYSTORE_CHAIN))
        return _paired(key, chain, name)
    if not stores.key_file:
        return None, []
    name = f"{stores.named(KEYSTORE_LOCATION)}={stores.key_file}"
    data = _read(stores.key_file, name)
    if data.startswith(MAGIC):
        key, chain = _jks_key(stores, data, name)
    elif data[0] == _DER_SEQUENCE:
        key, chain = _pkcs12_key(stores, data, name)
    else:
        text = _pem_text(data, name)
        key, chain = _pem_key(stores, text, name), _pem_certificates(text, name)
    return _paired(key, chain, name)


def _paired(
    key: PrivateKeyTypes, chain: list[x509.Certificate], name: str
) -> tuple[PrivateKeyTypes, list[x509.Certificate]]:
    """Return the key and the chain, which begins with the key's own certificate."""
    own = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    for at, certificate in enumerate(chain):
        if certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) == own:
            return key, [certificate, *chain[:at], *chain[at + 1 :]]
    raise KeyStoreError("there is no certificate that belongs to the private key.", name)


def _jks_key(stores: Stores, data: bytes, name: str) -> tuple[PrivateKeyTypes, list[x509.Certificate]]:
    password = _needed_password(stores, stores.key_store_password or stores.key_password, KEYSTORE_PASSWORD, name)
    try:
        content = read_jks(data, stores.key_store_password or None)
        if not content.keys:
            raise KeyStoreError("there is no private key in this store.", name)
        plain = decrypt_key(content.keys[0], stores.key_password or password)
    except JksError as error:
        both = (Mention(stores.named(KEYSTORE_PASSWORD)), " and ", Mention(stores.named(KEY_PASSWORD)))
        raise KeyStoreError(Text.of(f"{error}; check ", *both, "."), name) from None
    return _loaded_key(plain, name), [_certificate(der, name) for der in content.keys[0].chain]


def _pkcs12_key(stores: Stores, data: bytes, name: str) -> tuple[PrivateKeyTypes, list[x509.Certificate]]:
    password = _needed_password(stores, stores.key_store_password or stores.key_password, KEYSTORE_PASSWORD, name)
    store = _pkcs12(data, password, name, stores.named(KEYSTORE_PASSWORD))
    if store.key is None or store.cert is None:
        raise KeyStoreError("there is no private key with a certificate in this store.", name)
    others = [more.certificate for more in store.additional_certs]
    return store.key, _chain_of(store.cert.certificate, others)


def _chain_of(own: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """Return our certificate followed by its issuers, each after the certificate that it issued."""
    chain = [own]
    while chain[-1].issuer != chain[-1].subject:
        above = next((other for other in others if other.subject == chain[-1].issuer and other not in chain), None)
        if above is None:
            break
        chain.append(above)
    return chain


def _pem_key(stores: Stores, text: str, name: str) -> PrivateKeyTypes:
    blocks = [block for kind, block in _pem_blocks(text) if kind.endswith("PRIVATE KEY")]
    if not blocks:
        raise KeyStoreError("there is no private key in it.", name)
    password = stores.key_password.encode("utf-8") or None
    is_hidden = "ENCRYPTED" in blocks[0]
    if is_hidden and password is None:
        message = Text.of("the private key is encrypted; set ", Mention(stores.named(KEY_PASSWORD)), ".")
        raise KeyStoreError(message, name)
    try:
        return load_pem_private_key(blocks[0].encode("ascii"), password if is_hidden else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        hint = (", or ", Mention(stores.named(KEY_PASSWORD)), " is not its password") if is_hidden else ()
        raise KeyStoreError(Text.of("the private key cannot be read", *hint, "."), name) from None


def _loaded_key(der: bytes, name: str) -> PrivateKeyTypes:
    try:
        return load_der_private_key(der, None)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyStoreError("the private key is of a kind that is not known here.", name) from None


# --- trusted certificates ---------------------------------------------------------------------------------------------


def _trusted(stores: Stores) -> list[x509.Certificate]:
    if stores.trusted_pem:
        return _pem_certificates(stores.trusted_pem, stores.named(TRUSTSTORE_CERTIFICATES))
    if not stores.trusted_file:
        return []
    name = f"{stores.named(TRUSTSTORE_LOCATION)}={stores.trusted_file}"
    data = _read(stores.trusted_file, name)
    if data.startswith(MAGIC):
        found = _jks_trusted(stores, data, name)
    elif data[0] == _DER_SEQUENCE:
        found = _pkcs12_trusted(stores, data, name)
    else:
        found = _pem_certificates(_pem_text(data, name), name)
    if not found:
        raise KeyStoreError("there is no certificate in this store, so no broker could be trusted.", name)
    return found


def _jks_trusted(stores: Stores, data: bytes, name: str) -> list[x509.Certificate]:
    try:
        content = read_jks(data, stores.trusted_password or None)
    except JksError as error:
        message = Text.of(f"{error}; check ", Mention(stores.named(TRUSTSTORE_PASSWORD)), ".")
        raise KeyStoreError(message, name) from None
    own = [key.chain[0] for key in content.keys if key.chain]  # Java trusts the certificate of a key beside it
    return [_certificate(der, name) for der in (*content.trusted, *own)]


def _pkcs12_trusted(stores: Stores, data: bytes, name: str) -> list[x509.Certificate]:
    store = _pkcs12(data, stores.trusted_password, name, stores.named(TRUSTSTORE_PASSWORD))
    found = [more.certificate for more in store.additional_certs]
    if store.cert is not None:  # as in Java the certificate of a key is trusted, not those that have issued it
        for above in _chain_of(store.cert.certificate, found)[1:]:
            found.remove(above)
        found.append(store.cert.certificate)
    return found


# --- formats ----------------------------------------------------------------------------------------------------------


def _read(path: str, name: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_MAX_STORE_BYTES + 1)
    except OSError as error:
        raise KeyStoreError(f"the file cannot be read: {error.strerror}.", name) from None
    if not data or len(data) > _MAX_STORE_BYTES:
        raise KeyStoreError(f"the file is {'too large' if data else 'empty'}.", name)
    if data.startswith(_JCEKS_MAGIC):
        raise KeyStoreError(
            "it is a JCEKS store, which is not read; make a PKCS12 store of it with keytool -importkeystore.", name
        )
    return data


def _pkcs12(data: bytes, password: str, name: str, password_key: str) -> PKCS12KeyAndCertificates:
    try:
        return load_pkcs12(data, password.encode("utf-8") if password else None)
    except (ValueError, UnsupportedAlgorithm):
        message = Text.of(Mention(password_key), " is not the store's password, or the file is damaged or no PKCS12.")
        raise KeyStoreError(message, name) from None


def _pem_text(data: bytes, name: str) -> str:
    text = data.decode("utf-8", "replace")
    if "-----BEGIN " not in text:
        raise KeyStoreError("the file is neither JKS nor PKCS12 nor PEM.", name)
    return text


def _pem_blocks(text: str) -> list[tuple[str, str]]:
    """Return kind and canonical text of each block; its line breaks may have become blanks or been removed."""
    blocks = []
    for kind, body in _pem_bodies(text):
        if ":" in body:  # an old encrypted key, whose headers need their lines
            blocks.append((kind, f"-----BEGIN {kind}-----{body}-----END {kind}-----\n"))
            continue
        letters = "".join(body.split())
        lines = [letters[at : at + 64] for at in range(0, len(letters), 64)]
        blocks.append((kind, "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])))
    return blocks


def _pem_bodies(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each block that has an end; a block that begins inside another is part of it."""
    lines = list(_PEM_LINE.finditer(text))
    last_ends = {line[2]: line.start() for line in lines if line[1] == "END"}
    opened: re.Match[str] | None = None
    for line in lines:
        if opened is None:
            is_closed = line[1] == "BEGIN" and last_ends.get(line[2], 0) >= line.end()
            opened = line if is_closed else None
        elif line[1] == "END" and line[2] == opened[2]:
            yield opened[2], text[opened.end() : line.start()]
            opened = None


def _pem_certificates(text: str, name: str) -> list[x509.Certificate]:
    blocks = [block for kind, block in _pem_blocks(text) if kind in ("CERTIFICATE", "TRUSTED CERTIFICATE")]
    if not blocks:
        raise KeyStoreError("there is no certificate in it.", name)
    try:
        return [x509.load_pem_x509_certificate(block.encode("ascii")) for block in blocks]
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        raise KeyStoreError("a certificate in it is damaged.", name) from None


def _certificate(der: bytes, name: str) -> x509.Certificate:
    try:
        return x509.load_der_x509_certificate(der)
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        raise KeyStoreError("a certificate in it is damaged.", name) from None


def _as_pem(certificates: list[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def _needed_password(stores: Stores, password: str, key: str, name: str) -> str:
    if not password:
        raise KeyStoreError(Text.of("this store needs a password; set ", Mention(stores.named(key)), "."), name)
    return password
