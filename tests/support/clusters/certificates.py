"""A certificate authority of a test, with the files of what it has issued."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme
from cryptography import x509


class Authority:
    """A certificate authority with files of what it has issued."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self.folder = folder
        self.file = folder / "ca.pem"
        self.ca.cert_pem.write_to_path(str(self.file))

    def issue(self, name: str, common_name: str | None = None) -> Path:
        file = self.folder / f"{name}.pem"
        issued = self.ca.issue_cert("127.0.0.1", common_name=common_name, organization_name="Example")
        issued.private_key_and_cert_chain_pem.write_to_path(str(file))
        return file

    def client(self, certificate: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.file))
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def lines(self, client_auth: str = "none") -> dict[str, str]:
        return {
            "listeners": "https://127.0.0.1:0",
            "listeners.https.ssl.keystore.type": "PEM",
            "listeners.https.ssl.keystore.location": str(self.issue("worker")),
            "listeners.https.ssl.truststore.type": "PEM",
            "listeners.https.ssl.truststore.location": str(self.file),
            "listeners.https.ssl.client.auth": client_auth,
        }


def subject(file: Path) -> str:
    """Whose certificate a PEM file holds."""
    return x509.load_pem_x509_certificates(file.read_bytes())[0].subject.rfc4514_string()
