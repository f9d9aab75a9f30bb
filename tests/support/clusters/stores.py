"""Authorities, certificates, stores of every format: by `cryptography`, and by keytool where only Java writes it."""

from __future__ import annotations

import datetime as dt
import ipaddress
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from heliograph.embedded.java import java_home

STORE_PASSWORD = "store-canary"
_NOW = dt.datetime.now(dt.UTC)


@dataclass(frozen=True)
class Identity:
    """A private key with its certificate and the one above it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuer: x509.Certificate

    @property
    def chain_pem(self) -> str:
        return (self.certificate.public_bytes(Encoding.PEM) + self.issuer.public_bytes(Encoding.PEM)).decode()

    def key_pem(self, password: str = "") -> str:
        hidden = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden).decode()

    def pem_file(self, path: Path, password: str = "") -> Path:
        path.write_text(self.key_pem(password) + self.chain_pem)
        return path

    def pkcs12_file(self, path: Path, password: str = STORE_PASSWORD) -> Path:
        content = pkcs12.serialize_key_and_certificates(
            b"own", self.key, self.certificate, [self.issuer], BestAvailableEncryption(password.encode())
        )
        path.write_bytes(content)
        return path

    def jks_file(self, path: Path, key_password: str = STORE_PASSWORD) -> Path:
        between = self.pkcs12_file(path.with_suffix(".p12"))
        options = ["-srckeystore", between, "-srcstorepass", STORE_PASSWORD, "-srcalias", "own"]
        options += ["-destkeystore", path, "-deststoretype", "JKS", "-deststorepass", STORE_PASSWORD]
        keytool("-importkeystore", *options, "-destkeypass", key_password)
        return path


class Authority:
    """Issues certificates."""

    def __init__(self, name: str = "authority") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = self._signed(subject, subject, self.key, (_NOW, 30), is_authority=True)

    def issue(self, *hosts: str, name: str = "", days: int = 30) -> Identity:
        """An identity for hosts, or for a client by a name; one of negative days has ended."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name or hosts[0])])
        start = _NOW - dt.timedelta(days=60)
        certificate = self._signed(subject, self.certificate.subject, key, (start, 60 + days), hosts=hosts)
        return Identity(key, certificate, self.certificate)

    def _signed(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        span: tuple[dt.datetime, int],
        *,
        hosts: tuple[str, ...] = (),
        is_authority: bool = False,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(span[0] - dt.timedelta(hours=1))
            .not_valid_after(span[0] + dt.timedelta(days=span[1]))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if hosts:
            names = [_general_name(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def pem_file(self, path: Path) -> Path:
        path.write_text(self.pem)
        return path

    def store(self, path: Path, kind: str) -> Path:
        """A truststore of keytool's."""
        certificate = self.pem_file(path.with_suffix(".crt"))
        options = ["-alias", "ca", "-file", certificate, "-keystore", path, "-storetype", kind]
        keytool("-importcert", "-noprompt", *options, "-storepass", STORE_PASSWORD)
        return path


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def keytool(*arguments: object) -> None:
    command = [str(java_home() / "bin" / "keytool"), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
