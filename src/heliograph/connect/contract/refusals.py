"""The refusals of a Connect worker, in one table: status and message are Kafka Connect 4.3.1's own, recorded from it.

A row makes the error: `raise NOT_FOUND.error(name="c")`. The herder and REST take their refusals from here, so scripts
find Connect's messages; `docs/reference/rest.md` is generated from the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config.resolve.redaction import redact_value
from heliograph.connect.contract.herder import CONNECT_VERSION
from heliograph.errors import ConnectError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class RestRefusal:
    """One row: the HTTP status, the message with its placeholders, and when it is used."""

    status: int
    text: str
    when: str

    def error(self, **values: object) -> ConnectError:
        """Return the error, with its placeholders replaced."""
        return ConnectError(self.status, self.text.format(**values))


# --- connectors and tasks -------------------------------------------------------------------------
NOT_FOUND = RestRefusal(
    404, "Connector {name} not found", "the connector that is read, changed or deleted does not exist"
)
UNKNOWN_CONNECTOR = RestRefusal(
    404, "Unknown connector {name}", "pause, resume or stop of a connector that does not exist"
)
RESTART_UNKNOWN = RestRefusal(404, "Unknown connector: {name}", "restart of a connector that does not exist")
RESTART_UNKNOWN_TASK = RestRefusal(404, "Unknown task: {name}-{task}", "restart of a task that does not exist")
NO_STATUS = RestRefusal(
    404, "No status found for connector {name}", "no worker has reported a status of the connector yet"
)
NO_TASK_STATUS = RestRefusal(
    404, "No status found for task {name}-{task}", "no worker has reported a status of the task yet"
)
EXISTS = RestRefusal(409, "Connector {name} already exists", "POST of a name that is taken")
NAME_MISMATCH = RestRefusal(
    400,
    "Connector name configuration ({config_name}) doesn't match connector name in the URL ({name})",
    "the config has another `name` than the request",
)
NO_CLASS = RestRefusal(
    400,
    "Connector config {config} contains no connector type",
    "the config lacks `connector.class`; secrets are hidden",
)
UNKNOWN_CLASS = RestRefusal(
    400,
    "Failed to find any class that implements Connector and which name matches {class_name},"
    " available connectors are: {available}",
    "`connector.class` is none of MirrorMaker 2's three connectors",
)
INVALID = RestRefusal(
    400,
    "Connector configuration is invalid and contains the following {count} error(s):\n{errors}\n"
    "You can also find the above list of errors at the endpoint `/connector-plugins/{{connectorType}}/config/validate`",
    "values of the config cannot be used",
)

NO_SUCH_FLOW = RestRefusal(404, "Flow {name} not found", "there is no flow of the name, or the caller may not see it")
FLOW_AT_REST = RestRefusal(
    409,
    "The flow {name} cannot restart partitions now: its connector is {state}",
    "restart of partitions of a flow that does not run",
)

# --- offsets and topics ---------------------------------------------------------------------------
NO_OFFSETS = RestRefusal(
    400, "Partitions / offsets need to be provided for an alter offsets request", "PATCH of offsets without any"
)
NOT_STOPPED = RestRefusal(
    400,
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified"
    " connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
    "change of offsets while the connector is not stopped",
)
OTHER_CLUSTER = RestRefusal(
    400,
    "The connector {name} has only partitions of the cluster {cluster}",
    "`heliograph run`: PATCH of offsets with another `cluster` than the flow's source",
)
NOT_AN_ACTION = RestRefusal(
    403,
    "{name} runs as long as the process: only source connectors of a file can be stopped, resumed and restarted.",
    "`heliograph run`: a change of a checkpoint or heartbeat connector",
)
FLOW_FAILED = RestRefusal(
    409,
    "The flow of {name} has failed and takes no requests: {reason}. It starts again with the process, or with --watch"
    " when its configuration changes",
    "`heliograph run`: a change of a connector whose flow has failed for good",
)
NULL_PARTITION = RestRefusal(
    500, "Source partitions may not be null", "PATCH of offsets with an entry without partition"
)
TOPICS_NOT_TRACKED = RestRefusal(403, "Topic tracking is disabled.", "`topic.tracking.enable` is false")
TOPICS_NOT_RESETTABLE = RestRefusal(403, "Topic tracking reset is disabled.", "`topic.tracking.allow.reset` is false")

# --- workers --------------------------------------------------------------------------------------
STALE_CONFIG = RestRefusal(
    409,
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)",
    "the worker has not read a change of another one yet",
)
REBALANCE = RestRefusal(
    409,
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    "the leader changes while the request is under way",
)
NOT_WRITTEN = RestRefusal(
    500,
    "Failed to write to config topic; this may be due to a transient error and the request can be safely retried",
    "exactly-once: another worker has become the leader and fenced this one, or the transaction failed",
)
NO_LEADER = RestRefusal(
    409,
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway.",
    "the workers have not agreed on a leader yet",
)
TIMED_OUT = RestRefusal(500, "Request timed out", "the worker did not finish within 90 seconds; it may still do so")
CANNOT_FORWARD = RestRefusal(
    500, "IO Error trying to forward REST request: {reason}", "the leader does not answer this worker"
)


def no_class(config: Mapping[str, str | None]) -> ConnectError:
    """Return the refusal of a config without `connector.class`, formatted as Java formats a map."""
    shown = ", ".join(f"{key}={'null' if value is None else redact_value(key, value)}" for key, value in config.items())
    return NO_CLASS.error(config=f"{{{shown}}}")


def unknown_class(class_name: str, available: Iterable[str]) -> ConnectError:
    """Return the refusal of an unknown connector class, with the available ones as Connect describes them."""
    return UNKNOWN_CLASS.error(
        class_name=class_name, available=", ".join(_described(name) for name in sorted(available))
    )


def _described(class_name: str) -> str:
    return (
        f"PluginDesc{{klass=class {class_name}, name='{class_name}', version='{CONNECT_VERSION}',"
        f" encodedVersion={CONNECT_VERSION}, type=source, typeName='source', location='classpath'}}"
    )


def invalid(errors: Sequence[str]) -> ConnectError:
    """Return the refusal of a config with these errors."""
    return INVALID.error(count=len(errors), errors="\n".join(errors))
