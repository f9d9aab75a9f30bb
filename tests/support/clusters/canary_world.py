"""A cluster behind TLS, client certificates and passwords, and files for it in which every secret is a canary."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import psutil
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.web.endpoints.routes import ROUTES
from tests.support.clusters.canaries import Canaries
from tests.support.connect.connect_worker import free_port

SECURITY = "org.apache.kafka.common.security"
PLAIN = f"{SECURITY}.plain.PlainLoginModule required"
USERS = ("literal", "env", "file", "dir")  # where the file has their passwords


class World:
    """The cluster, the user's files, and everything that is looked at."""

    cluster: EmbeddedCluster

    def __init__(self, folder: Path) -> None:
        self.canaries = Canaries()
        self.user, self.temp, self.current = folder / "user", folder / "temp", folder / "current"
        for each in (self.user, self.temp, self.current, self.user / "mounted"):
            each.mkdir()
        self.variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
            "LEAK_PASSWORD": self.canaries["env"],
            "TMPDIR": str(self.temp),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.temp}",
        }
        (self.user / "logins.properties").write_text(
            f"password={self.canaries['file']}\nkey={self.canaries['key password']}\nwrong={self.canaries['wrong']}\n"
        )
        (self.user / "mounted" / "password").write_text(self.canaries["dir"])
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(str(self.user / "ca.pem"))
        self.inline_key = self._certificate("client.pem", self.canaries["key password"])
        self.port, self.plain_port = free_port(), free_port()

    def _certificate(self, name: str, password: str | None) -> str:
        """A certificate with its key, which is returned in plain text, in a file that may have a password."""
        issued = self.authority.issue_cert("127.0.0.1", "localhost")
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        (self.user / name).write_bytes(pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.canaries.add(f"key of {name}", plain.splitlines()[1])
        return plain

    def broker_config(self) -> dict[str, str]:
        """Listeners for us, and one for the test that asks for nothing."""
        self._certificate("broker.pem", None)
        users = " ".join(f'user_{name}="{self.canaries[name]}"' for name in USERS)
        return {
            "listeners": (
                f"SASL_SSL://127.0.0.1:{self.port},PLAINTEXT://127.0.0.1:{self.plain_port},"
                "CONTROLLER://127.0.0.1:{controller_port}"
            ),
            "advertised.listeners": f"SASL_SSL://127.0.0.1:{self.port},PLAINTEXT://127.0.0.1:{self.plain_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN} {users};",
            "listener.name.sasl_ssl.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.user / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.user / "ca.pem"),
        }

    def placeholder(self, name: str) -> str:
        """What stands in a file for a user's password."""
        return {
            "literal": self.canaries["literal"],
            "env": "${LEAK_PASSWORD}",
            "file": f"${{file:{self.user}/logins.properties:password}}",
            "dir": f"${{dir:{self.user}/mounted:password}}",
            "wrong": f"${{file:{self.user}/logins.properties:wrong}}",
        }[name]

    def login(self, user: str, prefix: str, password: str = "") -> dict[str, str]:
        """How a client gets in as a user."""
        keys = {
            "bootstrap.servers": f"127.0.0.1:{self.port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN} username="{user}" password="{password or self.placeholder(user)}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": f"{self.user}/ca.pem",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": f"{self.user}/client.pem",
            "ssl.key.password": f"${{file:{self.user}/logins.properties:key}}",
        }
        return {prefix + key: value for key, value in keys.items()}

    def properties(self, name: str, *parts: Mapping[str, str]) -> Path:
        """A file of the user's."""
        file = self.user / f"{name}.properties"
        lines = [f"{key}={_one_line(value)}" for part in parts for key, value in part.items()]
        file.write_text("\n".join(lines) + "\n")
        return file

    def mirror_file(self, name: str, *parts: Mapping[str, str]) -> Path:
        """From A to B, both the one cluster; four users, four places of their passwords."""
        flow = {
            "clusters": "A, B",
            "A->B.enabled": "true",
            "A->B.topics": "orders",
            "A->B.tasks.max": "1",
            "sync.topic.acls.enabled": "false",
            "replication.factor": "1",
        }
        roles = {
            "A.admin.sasl.jaas.config": f'{PLAIN} username="env" password={self.placeholder("env")};',
            "B.admin.sasl.jaas.config": f'{PLAIN} username="dir" password="{self.placeholder("dir")}";',
        }
        return self.properties(name, flow, self.login("literal", "A."), self.login("file", "B."), roles, *parts)

    def start(self, *arguments: object, log: str) -> subprocess.Popen[bytes]:
        """`heliograph` with these arguments; what it says goes to a log that is looked at like any file."""
        command = [sys.executable, "-m", "heliograph", *map(str, arguments)]
        with (self.current / log).open("ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=out, env=self.variables, cwd=self.current)

    def run(self, *arguments: object, log: str) -> int:
        """The same to its end; the exit code."""
        process = self.start(*arguments, log=log)
        try:
            return process.wait(240)
        finally:
            end(process)

    def said(self, log: str) -> str:
        return (self.current / log).read_text()

    def get(self, url: str, body: object = None, method: str = "GET") -> bytes:
        """An answer, whatever its status; checked."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
                text = answer.read()
        except urllib.error.HTTPError as error:
            text = error.read()
        self.canaries.check(f"{method} {url}", text)
        return text

    def ask_everything(self, url: str, connectors: list[str]) -> None:
        """Every GET of the REST API, for every connector."""
        for path in [route.path for route in ROUTES if route.method == "GET"]:
            for name in connectors if "{connector" in path else [""]:
                reported = path.replace("{connector}", name).replace("{task}", "0").replace("{logger}", "root")
                self.get(url + reported.replace("{plugin}", "MirrorSourceConnector").replace(">", "%3E"))
        self.get(f"{url}/connectors?expand=info&expand=status")


def _one_line(value: str) -> str:
    return value.replace("\n", "\\n\\\n")


def end(process: subprocess.Popen[bytes]) -> None:
    """With whatever it has started."""
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.wait()
    psutil.wait_procs(children, timeout=120)
