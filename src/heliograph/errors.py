"""Every error Heliograph raises on purpose. Each carries one sentence that names the thing and what to do.

    HeliographError
    ├── ConfigError            the user's file or options; carries all problems found, not only the first
    │   └── NotAllowedError    a connector names what its worker or a rule does not allow
    ├── OffsetsRefusedError    offsets written by hand that their connector would not understand
    ├── KeyStoreError          a keystore or truststore cannot be used
    ├── ClusterError           a Kafka cluster cannot be used
    │   ├── UnreachableError   no broker answered within the stated time
    │   ├── AuthenticationError the broker refused the credentials or the certificate
    │   ├── BrokerError        a broker answered with an error code
    │   └── GroupActiveError   a consumer group has members: only they may move its offsets
    ├── BatchError             a record batch that must not be forwarded as it is (topic, partition, offset)
    │   └── CorruptBatchError  its bytes do not hold together
    ├── TaskError              a copy task cannot continue and must be started again
    │   ├── LeaseLostError     the driver is gone or has taken the task back
    │   └── FencedError        another instance writes in our place; starting again would only take it back
    ├── ConnectError           a request to a worker's REST API that it must refuse (HTTP status)
    ├── RestError              a Connect worker's REST does not answer, or refuses a call
    ├── EngineError            Spark cannot be started or used
    └── EmbeddedError          the Kafka that Heliograph starts itself

Invariant: `str(error)` is fit for a user's eyes and never contains a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from heliograph.diagnostics import NOWHERE, Severity, Text, problem, with_severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.diagnostics import Diagnostic, Place


A = TypeVar("A")
B = TypeVar("B")


class HeliographError(Exception):
    """Root of all errors raised on purpose."""


class ConfigError(HeliographError):
    """One or more problems in what the user wrote; all are reported together, with warnings that may be the reason."""

    def __init__(self, found: str | Text | Iterable[Diagnostic], key: str = "", place: Place = NOWHERE) -> None:
        """Take the message of one problem and the key it is about, or all diagnostics."""
        diagnostics = (problem(found, key, place),) if isinstance(found, str | Text) else tuple(found)
        self.diagnostics: tuple[Diagnostic, ...] = diagnostics
        super().__init__("\n".join(map(str, self.diagnostics)))

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics that are errors."""
        return with_severity(self.diagnostics, Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics that are warnings."""
        return with_severity(self.diagnostics, Severity.WARNING)


class NotAllowedError(ConfigError):
    """A connector names what its worker, or a rule, does not let it have."""


def try_each(steps: Iterable[Callable[[], A]]) -> list[A]:
    """Return the results of all steps; if some fail, raises one ConfigError with the problems of all."""
    given: list[A] = []
    problems: list[Diagnostic] = []
    for step in steps:
        try:
            given.append(step())
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return given


def try_both(one: Callable[[], A], other: Callable[[], B]) -> tuple[A, B]:
    """Do the same for two steps with results of different types."""
    first: list[A] = []
    second: list[B] = []
    try_each((lambda: first.append(one()), lambda: second.append(other())))
    return first[0], second[0]


class OffsetsRefusedError(HeliographError):
    """Offsets that a connector would not understand, in Connect's sentence."""


class KeyStoreError(HeliographError):
    """A keystore or a truststore cannot be used."""

    def __init__(self, reason: str | Text, store: str = "") -> None:
        """Take the reason and the store: the name of its key, or `key=path` for a file."""
        super().__init__(f"{store}: {reason}" if store else str(reason))
        self.reason = reason
        self.store = store


class ClusterError(HeliographError):
    """A Kafka cluster cannot be used."""


class UnreachableError(ClusterError):
    """No broker of the cluster answered in time."""


class AuthenticationError(ClusterError):
    """The broker refused our credentials, or we refused the broker's certificate."""


class BrokerError(ClusterError):
    """A broker answered with an error code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class GroupActiveError(ClusterError):
    """A consumer group has members; only they may move its offsets."""


class BatchError(HeliographError):
    """A record batch that must not be forwarded as it is."""

    def __init__(self, reason: str, *, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


class CorruptBatchError(BatchError):
    """The batch's bytes do not hold together; forwarding it would hide the damage."""


class TaskError(HeliographError):
    """A copy task cannot continue; it is started again from its committed offsets."""


class LeaseLostError(TaskError):
    """The task's driver is gone or has given the task to someone else."""


class FencedError(TaskError):
    """Another instance has taken our place as the target's producer; this one must not begin again by itself."""


class ConnectError(HeliographError):
    """A request to a worker that it must refuse; the REST API answers with the status and the sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class RestError(HeliographError):
    """A Connect worker's REST does not answer (then `status` is 0), or refuses a call with an HTTP status."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class EngineError(HeliographError):
    """Spark cannot be started or used."""


class EmbeddedError(HeliographError):
    """The Kafka that Heliograph starts itself cannot be fetched, started or stopped."""
