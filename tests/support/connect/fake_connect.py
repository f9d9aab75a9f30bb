"""A small Connect worker in the test's own process: real HTTP, connectors in memory, and refusals a test scripts."""

from __future__ import annotations

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit


class FakeConnect:
    """Answers the calls of the deploy commands as Connect does."""

    def __init__(self, *, knows_expand: bool = True, knows_validation: bool = True) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.statuses: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.authorizations: list[str | None] = []
        self.knows_expand = knows_expand
        self.knows_validation = knows_validation
        self.refusals: deque[tuple[str, int, bytes]] = deque()  # method, status, body: for the next call of the kind
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def refuse(self, method: str, status: int, message: str) -> None:
        body = json.dumps({"error_code": status, "message": message}).encode()
        self.refusals.append((method, status, body))

    def set_state(self, name: str, state: str, *tasks: dict[str, Any], **more: Any) -> None:
        self.statuses[name] = {
            "name": name,
            "connector": {"state": state, "worker_id": "127.0.0.1:8083", **more},
            "tasks": list(tasks),
            "type": "source",
        }

    def answer(self, method: str, path: str, query: str, body: Any) -> tuple[int, Any]:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts == ["connectors"]:
            return 200, self._list(is_expanded="expand=status" in query)
        kind, name, *what = parts
        if kind == "connector-plugins":
            return self._validate(name, body)
        if method == "PUT" and what == ["config"]:
            return self._put(name, body)
        if method == "GET" and what == ["status"]:
            status = self.statuses.get(name)
            return (200, status) if status else _error(404, f"No status found for connector {name}")
        if method in ("GET", "DELETE") and not what:
            return self._whole(method, name)
        return _error(405, "HTTP 405 Method Not Allowed")

    def _whole(self, method: str, name: str) -> tuple[int, Any]:
        config = self.configs.get(name)
        if method == "DELETE":
            self.statuses.pop(name, None)
            self.configs.pop(name, None)
        if config is None:
            return _error(404, f"Connector {name} not found")
        return (204, None) if method == "DELETE" else (200, {"name": name, "config": config})

    def _list(self, *, is_expanded: bool) -> Any:
        if is_expanded and self.knows_expand:
            return {name: {"status": status} for name, status in self.statuses.items()}
        return list(self.statuses)

    def _validate(self, plugin: str, config: dict[str, Any]) -> tuple[int, Any]:
        if not self.knows_validation:
            return _error(404, "HTTP 404 Not Found")
        if config.get("connector.class") != plugin:
            return _error(400, "Included connector type does not match request type")
        errors = {"name": [] if "name" in config else ['Missing required configuration "name"']}
        errors["tasks.max"] = ["Value must be at least 1"] if config.get("tasks.max") == "0" else []
        configs = [{"definition": {}, "value": {"name": key, "errors": found}} for key, found in errors.items()]
        return 200, {"name": plugin, "error_count": sum(map(len, errors.values())), "configs": configs}

    def _put(self, name: str, config: dict[str, Any]) -> tuple[int, Any]:
        if config.get("name", name) != name:
            return _error(400, f"Connector name configuration ({config['name']}) doesn't match connector name ({name})")
        is_new = name not in self.configs
        self.configs[name] = config
        self.set_state(name, "RUNNING")
        return 201 if is_new else 200, {"name": name, "config": config, "tasks": [], "type": "source"}


def _error(status: int, message: str) -> tuple[int, Any]:
    return status, {"error_code": status, "message": message}


def _handler_of(connect: FakeConnect) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            split = urlsplit(self.path)
            connect.calls.append(f"{self.command} {split.path}")
            connect.authorizations.append(self.headers.get("Authorization"))
            if connect.refusals and connect.refusals[0][0] == self.command:
                _method, status, data = connect.refusals.popleft()
            else:
                status, body = connect.answer(self.command, split.path, split.query, json.loads(text or b"null"))
                data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_DELETE = _serve  # noqa: N815  (the names http.server looks for)

        def log_message(self, *_arguments: object) -> None:
            """Tests print nothing."""

    return Handler
