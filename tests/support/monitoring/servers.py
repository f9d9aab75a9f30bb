"""Real Prometheus and Alertmanager on free ports of 127.0.0.1, and a web server that receives what Slack would.

with Prometheus(tools, folder, config) as prometheus:
    prometheus.query("up")
"""

from __future__ import annotations

import json
import math
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

from heliograph.embedded.process import free_ports
from tests.support.monitoring.tools import Tools

_READY_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 30.0


class Sample(NamedTuple):
    """One series of an answer."""

    labels: dict[str, str]
    value: float

    @property
    def is_known(self) -> bool:
        """Return whether it is a number."""
        return not math.isnan(self.value)


class _Server:
    """A process with a port that answers `/-/ready`."""

    def __init__(self, command: list[str], port: int, log: Path, tools: Tools) -> None:
        self.port, self.log = port, log
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"
        with log.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=tools.folder)
        self._wait_until_ready()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End this process, and no other."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON of an answer."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        try:
            with urllib.request.urlopen(f"{self.url}{path}{query}", timeout=60) as answer:  # noqa: S310  (our own URL)
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):  # noqa: S310
                    return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise AssertionError(f"{self.log.stem} does not answer:\n{self.log.read_text()[-3000:]}") from None
            time.sleep(0.05)


class Prometheus(_Server):
    """Prometheus with a configuration, given as its file would have it."""

    def __init__(self, tools: Tools, folder: Path, config: dict[str, Any]) -> None:
        file = folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config, sort_keys=False))
        port = free_ports(1)[0]
        command = [str(tools.prometheus), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
        super().__init__(command, port, folder / "prometheus.log", tools)

    def query(self, expression: str) -> list[Sample]:
        """Return the series of an expression, as of now."""
        found = self.get("/api/v1/query", query=expression)["data"]
        if found["resultType"] == "scalar":
            return [Sample({}, float(found["result"][1]))]
        return [Sample(each["metric"], float(each["value"][1])) for each in found["result"]]

    def value(self, expression: str) -> float | None:
        """Return the only value of an expression; None if it has no series."""
        found = self.query(expression)
        assert len(found) <= 1, f"{expression} has {len(found)} series"
        return found[0].value if found else None

    def targets(self) -> list[dict[str, Any]]:
        """Return what it scrapes, with health and last error."""
        return list(self.get("/api/v1/targets")["data"]["activeTargets"])

    def firing(self, name: str) -> list[dict[str, str]]:
        """Return the labels of each alert of a name that fires."""
        alerts = self.get("/api/v1/alerts")["data"]["alerts"]
        return [each["labels"] for each in alerts if each["state"] == "firing" and each["labels"]["alertname"] == name]


class Alertmanager(_Server):
    """Alertmanager with a configuration; alone, without peers."""

    def __init__(self, tools: Tools, folder: Path, config: dict[str, Any]) -> None:
        file = folder / "alertmanager.yml"
        file.write_text(yaml.safe_dump(config, sort_keys=False))
        port = free_ports(1)[0]
        command = [str(tools.alertmanager), f"--config.file={file}", f"--storage.path={folder / 'alerts'}"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=", "--log.level=warn"]
        super().__init__(command, port, folder / "alertmanager.log", tools)


class SlackReceiver:
    """Receives the messages that Alertmanager posts to a webhook of Slack."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        messages = self.messages

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_arguments: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/services/T0/B0/secret"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def texts(self) -> list[str]:
        """Return title and text of every attachment so far."""
        attachments = [each for message in self.messages for each in message["attachments"]]
        return [f"{each['title']}\n{each['text']}" for each in attachments]
