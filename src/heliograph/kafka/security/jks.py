"""Reads JKS, Java's format for stores of certificates and keys before PKCS12, which is still in wide use.

It reads only what TLS needs: private keys with their chains, and trusted certificates. The format is Java's own:
big-endian numbers, modified UTF-8 for names, and a SHA-1 over password and content at the end. A private key is
encrypted by a stream of SHA-1 digests of the password: weak, but that is what the files contain.

Invariant: a length that reaches past the end of the data is an error before anything is cut or allocated.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

MAGIC = b"\xfe\xed\xfe\xed"
_KEY, _CERTIFICATE = 1, 2
_SALT_BYTES = _DIGEST_BYTES = 20
_WHITENER = b"Mighty Aphrodite"  # part of the format: Java mixes it into the digest of every store
_PROTECTION = bytes.fromhex("060a2b060104012a02110101")  # the object identifier of Java's own key protection
_SEQUENCE, _OCTETS = 0x30, 0x04


class JksError(ValueError):
    """A store cannot be read; the message follows the name of the store."""


class WrongPasswordError(JksError):
    """The password does not open the store, or the key in it."""


@dataclass(frozen=True, slots=True)
class ProtectedKey:
    """A private key that is still encrypted, and its certificates in DER, its own first."""

    protected: bytes = field(repr=False)
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class JksContent:
    """The entries of a store, in their order; trusted certificates in DER."""

    keys: tuple[ProtectedKey, ...]
    trusted: tuple[bytes, ...]


def read_jks(data: bytes, password: str | None) -> JksContent:
    """Return the content of a store; like Java, check it only if there is a password."""
    if len(data) < len(MAGIC) + _DIGEST_BYTES:
        raise JksError("it is cut short")
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        found = hashlib.sha1(_password_bytes(password) + _WHITENER + content).digest()  # noqa: S324  (the format's)
        if not hmac.compare_digest(found, digest):
            raise WrongPasswordError("the password is not the store's, or the file is damaged")
    reader = _JksReader(content, len(MAGIC))
    version, count = reader.number(4), reader.number(4)
    if version not in (1, 2):
        raise JksError(f"it is of the unknown version {version}")
    keys: list[ProtectedKey] = []
    trusted: list[bytes] = []
    for _entry in range(count):
        tag = reader.number(4)
        reader.take(reader.number(2))  # its alias
        reader.take(8)  # when it was made
        if tag == _KEY:
            protected = reader.take(reader.number(4))
            chain = tuple(reader.certificate(version) for _certificate in range(reader.number(4)))
            keys.append(ProtectedKey(protected, chain))
        elif tag == _CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise JksError(f"it has an entry of the unknown kind {tag}")
    return JksContent(tuple(keys), tuple(trusted))


def decrypt_key(key: ProtectedKey, password: str) -> bytes:
    """Decrypt a private key; return it as PKCS8 in DER."""
    outer, _end = _element(key.protected, 0, _SEQUENCE)
    algorithm, end = _element(outer, 0, _SEQUENCE)
    if not algorithm.startswith(_PROTECTION):
        raise JksError("its key is protected in a way that is not Java's")
    hidden, _end = _element(outer, end, _OCTETS)
    if len(hidden) < _SALT_BYTES + _DIGEST_BYTES:
        raise JksError("its key is cut short")
    salt, covered, check = hidden[:_SALT_BYTES], hidden[_SALT_BYTES:-_DIGEST_BYTES], hidden[-_DIGEST_BYTES:]
    secret = _password_bytes(password)
    stream, last = bytearray(), salt
    while len(stream) < len(covered):
        last = hashlib.sha1(secret + last).digest()  # noqa: S324  (the format's)
        stream += last
    plain = bytes(a ^ b for a, b in zip(covered, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check):  # noqa: S324  (the format's)
        raise WrongPasswordError("the password is not its key's")
    return plain


def _password_bytes(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _JksReader:
    """A cursor over the bytes of a store."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise JksError("it is cut short")
        taken, self._at = self._data[self._at : end], end
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.take(self.number(2))  # its type, always X.509
        return self.take(self.number(4))


def _element(data: bytes, at: int, wanted_tag: int) -> tuple[bytes, int]:
    """Return the content of the DER element that begins at an index, and the index of its end."""
    header = data[at : at + 2]
    start = at + 2
    size = header[1] if len(header) == 2 else 0
    if size & 0x80:
        length_bytes = size & 0x7F
        size = int.from_bytes(data[start : start + length_bytes], "big")
        start += length_bytes
    if len(header) < 2 or header[0] != wanted_tag or start + size > len(data):
        raise JksError("its key is not in the form Java writes")
    return data[start : start + size], start + size
