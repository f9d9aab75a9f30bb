"""A small OIDC server: tokens for client credentials, signed; and the key that brokers check them by."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT_ID, CLIENT_SECRET = "mirror", "oauth-canary"


class TokenServer:
    """What it has been asked, and how it answers."""

    def __init__(self) -> None:
        self.url = ""
        self.life_s = 3600
        self.secret = CLIENT_SECRET
        self.location = ""  # where every request is sent on to
        self.error = "invalid_client"
        self.issues: list[int] = []  # HTTP statuses of the next answers
        self.asked: list[dict[str, list[str]]] = []
        self._key = rsa.generate_private_key(65537, 2048)

    def token(self, subject: str) -> str:
        now = int(time.time())
        head = {"alg": "RS256", "kid": "test", "typ": "JWT"}
        claims = {"sub": subject, "iss": "tests", "aud": "kafka", "iat": now, "exp": now + self.life_s, "scope": "k"}
        spoken = f"{_encoded(json.dumps(head).encode())}.{_encoded(json.dumps(claims).encode())}"
        signature = self._key.sign(spoken.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{spoken}.{_encoded(signature)}"

    def keys(self) -> dict[str, object]:
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "test", "use": "sig", "alg": "RS256"}
        key |= {"n": _encoded(numbers.n.to_bytes(256, "big")), "e": _encoded(numbers.e.to_bytes(3, "big"))}
        return {"keys": [key]}

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, object]]:
        self.asked.append(form)
        if self.location:
            return 302, {"access_token": self.token(CLIENT_ID)}
        if self.issues:
            return self.issues.pop(0), {"error": "server_error"}
        expected = "Basic " + base64.b64encode(f"{CLIENT_ID}:{self.secret}".encode()).decode()
        if authorization != expected:
            return 401, {"error": self.error, "error_description": f"not {authorization}"}
        return 200, {"access_token": self.token(CLIENT_ID), "token_type": "Bearer", "expires_in": self.life_s}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextmanager
def token_server(pem: Path | None = None) -> Iterator[TokenServer]:
    """A running one; behind TLS where a PEM file with key and certificate is given."""
    tokens = TokenServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, tokens.keys())

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._send(*tokens.answer(self.headers.get("Authorization", ""), form))

        def _send(self, status: int, body: dict[str, object]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if tokens.location:
                self.send_header("Location", tokens.location)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if pem is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        tokens.url = f"{'http' if pem is None else 'https'}://127.0.0.1:{server.server_address[1]}/token"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield tokens
        finally:
            server.shutdown()
