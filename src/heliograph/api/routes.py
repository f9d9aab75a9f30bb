"""THE TABLE of routes: every endpoint of Connect's REST API once, with what it answers and where.

The app dispatches by it and `docs/reference/rest.md` is written from it. `is_local` endpoints are answered by the
worker that is asked; all others by the one that leads. `is_change` endpoints are refused where a file defines the
connectors. `access` is what rules must allow a caller; an endpoint without it cannot be written down.

A config becomes one record of the config topic, of which brokers take 1 MiB unless they are told otherwise; twice as
much leaves room for JSON's escapes. Offsets become a record for each partition, so more of them can be sent in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.api import connectors, loggers, offsets, plugins, root
from heliograph.api.errors import answer_of
from heliograph.api.guard import Access
from heliograph.worker.connect_errors import TIMED_OUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.api.exchange import Answer, Call

_REQUEST_TIMEOUT_S = 90.0
_HEALTH_TIMEOUT_S = 10.0
_LARGEST_BODY_BYTES = 64 << 10
LARGEST_CONFIG_BYTES = 2 << 20
LARGEST_OFFSETS_BYTES = 4 << 20


def _timed_out() -> Answer:
    return answer_of(TIMED_OUT.error())


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One row."""

    method: str
    path: str
    handler: Callable[[Call], Answer]
    answers: str
    doc: str
    access: Access
    is_change: bool = False
    is_local: bool = False
    is_probe: bool = False
    largest_body_bytes: int = _LARGEST_BODY_BYTES
    timeout_s: float = _REQUEST_TIMEOUT_S
    on_timeout: Callable[[], Answer] = _timed_out


def _read(path: str, handler: Callable[[Call], Answer], doc: str) -> Endpoint:
    return Endpoint("GET", path, handler, "200", doc, Access.SEE_CONNECTOR)


def _local(path: str, handler: Callable[[Call], Answer], doc: str, access: Access = Access.BE_KNOWN) -> Endpoint:
    return Endpoint("GET", path, handler, "200", doc, access, is_local=True)


def _change(
    method: str,
    path: str,
    handler: Callable[[Call], Answer],
    answers: str,
    doc: str,
    largest_body_bytes: int = _LARGEST_BODY_BYTES,
) -> Endpoint:
    return Endpoint(
        method,
        path,
        handler,
        answers,
        doc,
        Access.CHANGE_CONNECTOR,
        is_change=True,
        largest_body_bytes=largest_body_bytes,
    )


def _internal(method: str, path: str) -> Endpoint:
    doc = "Between Java's workers only; refused"
    return Endpoint(method, path, root.refuse_internal, "-", doc, Access.NOTHING, is_local=True)


_C = "/connectors/{connector}"
_TASK = _C + "/tasks/{task}"

ROUTES = (
    _local("/", root.describe_worker, "Version of the API, what built it, id of the worker's Kafka cluster"),
    Endpoint(
        "GET",
        "/health",
        root.health,
        "200, 503, 500",
        "Whether the worker is ready (200), starting (503) or stuck (500, after 10 s)",
        Access.BE_KNOWN,
        is_local=True,
        is_probe=True,
        timeout_s=_HEALTH_TIMEOUT_S,
        on_timeout=root.unhealthy,
    ),
    Endpoint(
        "GET",
        "/connectors",
        connectors.list_connectors,
        "200",
        "Names; with `expand=info`, `expand=status` or both, more of each",
        Access.BE_KNOWN,
    ),
    Endpoint(
        "POST",
        "/connectors",
        connectors.create,
        "201",
        "New connector: `name`, `config` and maybe `initial_state`",
        Access.CREATE_CONNECTOR,
        is_change=True,
        largest_body_bytes=LARGEST_CONFIG_BYTES,
    ),
    _read(_C, connectors.get, "Config and tasks"),
    _change("DELETE", _C, connectors.delete, "204", "Stop and forget; progress stays"),
    _read(_C + "/config", connectors.get_config, "Config alone, as it was written"),
    _change(
        "PUT",
        _C + "/config",
        connectors.put_config,
        "200, 201",
        "Replace the config, or create the connector",
        LARGEST_CONFIG_BYTES,
    ),
    _change(
        "PATCH",
        _C + "/config",
        connectors.patch_config,
        "200",
        "Replace some keys; null removes one",
        LARGEST_CONFIG_BYTES,
    ),
    _read(_C + "/status", connectors.get_status, "States of the connector and its tasks"),
    _change("PUT", _C + "/pause", connectors.pause, "202", "Tasks stay and do nothing"),
    _change("PUT", _C + "/resume", connectors.resume, "202", "Back to work"),
    _change("PUT", _C + "/stop", connectors.stop, "204", "Tasks go, the config stays; needed before offsets change"),
    _change(
        "POST",
        _C + "/restart",
        connectors.restart,
        "204, 202",
        "Restart the connector; with `includeTasks=true` its tasks, with `onlyFailed=true` what failed (202, status)",
    ),
    _read(_C + "/tasks", connectors.list_tasks, "Config of each task"),
    _read(_TASK + "/status", connectors.get_task_status, "State of one task"),
    _change("POST", _TASK + "/restart", connectors.restart_task, "204", "Restart one task"),
    _read(_C + "/topics", connectors.get_topics, "Topics it has written to since it was created or they were reset"),
    _change("PUT", _C + "/topics/reset", connectors.reset_topics, "202", "Forget the topics it has written to"),
    _read(_C + "/offsets", offsets.get_offsets, "Committed progress"),
    _change(
        "PATCH",
        _C + "/offsets",
        offsets.alter_offsets,
        "200",
        "Overwrite progress; an offset of null is removed",
        LARGEST_OFFSETS_BYTES,
    ),
    _change("DELETE", _C + "/offsets", offsets.reset_offsets, "200", "Forget all progress"),
    _local("/connector-plugins", plugins.list_plugins, "The connectors there are"),
    _local(
        "/connector-plugins/{plugin}/config",
        plugins.get_definitions,
        "Keys of a connector; `version` may be `latest` or 4.3.1",
    ),
    Endpoint(
        "PUT",
        "/connector-plugins/{plugin}/config/validate",
        plugins.validate,
        "200",
        "What each key of a config means and what is wrong with it",
        Access.WRITE_CONFIGS,
        is_local=True,
        largest_body_bytes=LARGEST_CONFIG_BYTES,
    ),
    _local("/admin/loggers", loggers.list_loggers, "Loggers in use with their levels", Access.SEE_WORKER),
    _local("/admin/loggers/{logger}", loggers.get_logger, "Level of one logger", Access.SEE_WORKER),
    Endpoint(
        "PUT",
        "/admin/loggers/{logger}",
        loggers.set_level,
        "200, 204",
        "Set `level`; 200 and the loggers changed, or with `scope=cluster` 204 and on every worker",
        Access.CHANGE_WORKER,
        is_local=True,
    ),
    _internal("POST", _C + "/tasks"),
    _internal("PUT", _C + "/fence"),
)
