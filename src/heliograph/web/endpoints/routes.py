"""The table of routes: every endpoint of Connect's REST API once, then those of our own.

The app dispatches by it, and `docs/reference/rest.md` is generated from it. The worker that receives a request answers
`is_local` endpoints itself; the leader answers all others. `is_change` endpoints are refused if a file defines the
connectors, except those with `is_action` if the operator allows actions. `access` is the permission that a caller
needs; an endpoint cannot be defined without it.

A config becomes one record of the config topic, and brokers accept 1 MiB by default; twice as much leaves room for the
escapes of JSON. Offsets become a record for each partition, so more of them can be sent in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from heliograph.connect.contract.refusals import TIMED_OUT
from heliograph.web.access.guard import Access
from heliograph.web.endpoints import connector_endpoints, flow_endpoints, metric_pages, worker_endpoints
from heliograph.web.error_responses import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.web.exchange import Call, RestResponse


_REQUEST_TIMEOUT_S = 90.0
_HEALTH_TIMEOUT_S = 10.0
_SCRAPE_TIMEOUT_S = 10.0  # Prometheus's own
_LARGEST_BODY_BYTES = 64 << 10
LARGEST_CONFIG_BYTES = 2 << 20
LARGEST_OFFSETS_BYTES = 4 << 20


def _timed_out() -> RestResponse:
    return answer_of(TIMED_OUT.error())


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One row; `answers` are the status codes."""

    method: str
    path: str
    handler: Callable[[Call], RestResponse]
    answers: str
    doc: str
    access: Access
    is_change: bool = False
    is_action: bool = False
    is_local: bool = False
    is_probe: bool = False
    is_scrape: bool = False  # answers in a format of Prometheus, whatever the client accepts
    largest_body_bytes: int = _LARGEST_BODY_BYTES
    timeout_s: float = _REQUEST_TIMEOUT_S
    on_timeout: Callable[[], RestResponse] = _timed_out


def _read(path: str, handler: Callable[[Call], RestResponse], doc: str) -> Endpoint:
    return Endpoint("GET", path, handler, "200", doc, Access.SEE_CONNECTOR)


def _local(path: str, handler: Callable[[Call], RestResponse], doc: str, access: Access = Access.BE_KNOWN) -> Endpoint:
    return Endpoint("GET", path, handler, "200", doc, access, is_local=True)


def _change(
    method: str,
    path: str,
    handler: Callable[[Call], RestResponse],
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


def _action(
    method: str,
    path: str,
    handler: Callable[[Call], RestResponse],
    answers: str,
    doc: str,
    largest_body_bytes: int = _LARGEST_BODY_BYTES,
) -> Endpoint:
    return replace(_change(method, path, handler, answers, doc, largest_body_bytes), is_action=True)


def _internal(method: str, path: str) -> Endpoint:
    doc = "Between Java's workers only; refused"
    return Endpoint(method, path, worker_endpoints.refuse_internal, "-", doc, Access.NOTHING, is_local=True)


def _flow(path: str, handler: Callable[[Call], RestResponse], doc: str) -> Endpoint:
    return Endpoint("GET", f"{_FLOWS}/{{flow}}{path}", handler, "200", doc, Access.SEE_FLOW)


_C = "/connectors/{connector}"
_TASK = _C + "/tasks/{task}"
_FLOWS = "/heliograph/v1/flows"

ROUTES = (
    _local("/", worker_endpoints.describe_worker, "Version of the API, commit, id of the worker's Kafka cluster"),
    Endpoint(
        "GET",
        "/health",
        worker_endpoints.health,
        "200, 503, 500",
        "Whether the worker is ready (200), starting (503) or stuck (500, after 10 s)",
        Access.BE_KNOWN,
        is_local=True,
        is_probe=True,
        timeout_s=_HEALTH_TIMEOUT_S,
        on_timeout=worker_endpoints.unhealthy,
    ),
    Endpoint(
        "GET",
        "/connectors",
        connector_endpoints.list_connectors,
        "200",
        "Names; with `expand=info`, `expand=status` or both, more of each",
        Access.BE_KNOWN,
    ),
    Endpoint(
        "POST",
        "/connectors",
        connector_endpoints.create,
        "201",
        "New connector: `name`, `config` and maybe `initial_state`",
        Access.CREATE_CONNECTOR,
        is_change=True,
        largest_body_bytes=LARGEST_CONFIG_BYTES,
    ),
    _read(_C, connector_endpoints.get, "Config and tasks"),
    _change("DELETE", _C, connector_endpoints.delete, "204", "Stop and delete; source offsets stay"),
    _read(_C + "/config", connector_endpoints.get_config, "Config alone, as it was written"),
    _change(
        "PUT",
        _C + "/config",
        connector_endpoints.put_config,
        "200, 201",
        "Replace the config, or create the connector",
        LARGEST_CONFIG_BYTES,
    ),
    _change(
        "PATCH",
        _C + "/config",
        connector_endpoints.patch_config,
        "200",
        "Replace some keys; null removes one",
        LARGEST_CONFIG_BYTES,
    ),
    _read(_C + "/status", connector_endpoints.get_status, "States of the connector and its tasks"),
    _action("PUT", _C + "/pause", connector_endpoints.pause, "202", "Tasks stay and do nothing"),
    _action("PUT", _C + "/resume", connector_endpoints.resume, "202", "Resume from paused or stopped"),
    _action(
        "PUT",
        _C + "/stop",
        connector_endpoints.stop,
        "204",
        "Tasks are removed, the config stays; needed before offsets change",
    ),
    _action(
        "POST",
        _C + "/restart",
        connector_endpoints.restart,
        "204, 202",
        "Restart the connector; with `includeTasks=true` its tasks, with `onlyFailed=true` what failed (202, status)",
    ),
    _read(_C + "/tasks", connector_endpoints.list_tasks, "Config of each task"),
    _read(_TASK + "/status", connector_endpoints.get_task_status, "State of one task"),
    _action("POST", _TASK + "/restart", connector_endpoints.restart_task, "204", "Restart one task"),
    _read(
        _C + "/topics",
        connector_endpoints.get_topics,
        "Topics it has written to since it was created or they were reset",
    ),
    _change("PUT", _C + "/topics/reset", connector_endpoints.reset_topics, "202", "Reset the topics it has written to"),
    _read(_C + "/offsets", connector_endpoints.get_offsets, "Committed source offsets"),
    _action(
        "PATCH",
        _C + "/offsets",
        connector_endpoints.alter_offsets,
        "200",
        "Alter source offsets; an offset of null is removed",
        LARGEST_OFFSETS_BYTES,
    ),
    _action("DELETE", _C + "/offsets", connector_endpoints.reset_offsets, "200", "Reset all source offsets"),
    _local("/connector-plugins", worker_endpoints.list_plugins, "The available connectors"),
    _local(
        "/connector-plugins/{plugin}/config",
        worker_endpoints.get_definitions,
        "Keys of a connector; `version` may be `latest` or 4.3.1",
    ),
    Endpoint(
        "PUT",
        "/connector-plugins/{plugin}/config/validate",
        worker_endpoints.validate,
        "200",
        "Every key of a config with its value and errors",
        Access.WRITE_CONFIGS,
        is_local=True,
        largest_body_bytes=LARGEST_CONFIG_BYTES,
    ),
    _local("/admin/loggers", worker_endpoints.list_loggers, "Loggers in use with their levels", Access.SEE_WORKER),
    _local("/admin/loggers/{logger}", worker_endpoints.get_logger, "Level of one logger", Access.SEE_WORKER),
    Endpoint(
        "PUT",
        "/admin/loggers/{logger}",
        worker_endpoints.set_level,
        "200, 204",
        "Set `level`; 200 and the loggers changed, or with `scope=cluster` 204 and on every worker",
        Access.CHANGE_WORKER,
        is_action=True,
        is_local=True,
    ),
    _internal("POST", _C + "/tasks"),
    _internal("PUT", _C + "/fence"),
    Endpoint(
        "GET",
        "/health/live",
        flow_endpoints.live,
        "200",
        "That the process answers, for a liveness probe",
        Access.BE_KNOWN,
        is_local=True,
        is_probe=True,
    ),
    Endpoint(
        "GET",
        "/health/ready",
        flow_endpoints.ready,
        "200, 503",
        "Whether every flow here reaches its clusters and moves (200), or why not (503), for a readiness probe",
        Access.BE_KNOWN,
        is_local=True,
        is_probe=True,
        timeout_s=_HEALTH_TIMEOUT_S,
        on_timeout=flow_endpoints.not_ready,
    ),
    Endpoint(
        "GET",
        "/metrics",
        metric_pages.metrics,
        "200",
        "Metrics of this process in Prometheus's text format, or as OpenMetrics if `Accept` prefers it",
        Access.BE_KNOWN,
        is_local=True,
        is_scrape=True,
        timeout_s=_SCRAPE_TIMEOUT_S,
    ),
    Endpoint(
        "GET", _FLOWS, flow_endpoints.list_flows, "200", "State, lag, rates and tasks of every flow", Access.BE_KNOWN
    ),
    _flow("", flow_endpoints.get_flow, "The same of one flow"),
    _flow(
        "/partitions",
        flow_endpoints.list_partitions,
        "Its partitions; `state`, `topic`, and for pages `start` and `limit` (at most 1,000)",
    ),
    Endpoint(
        "GET",
        "/heliograph/v1/losses",
        flow_endpoints.list_losses,
        "200",
        "Records that source and target do not both have, newest first; `flow`, and for pages `start` and `limit`"
        " (at most 1,000)",
        Access.BE_KNOWN,
    ),
    Endpoint(
        "POST",
        "/heliograph/v1/flows/{flow}/restart",
        flow_endpoints.restart_partitions,
        "202",
        "Restart its tasks, or the `topic` and `partition` of the body; `from` is `beginning`, `end`, `committed` or an"
        " offset",
        Access.CHANGE_FLOW,
        is_change=True,
        is_action=True,
    ),
)

METRIC_ROUTES = tuple(row for row in ROUTES if row.is_scrape or row.path in ("/health/live", "/health/ready"))
"""The endpoints of the listeners that are for metrics alone."""
