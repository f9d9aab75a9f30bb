"""Whether secrets may travel to Spark's executors: where Spark encrypts that way, or the user says that it need not.

A task's payload holds what its clients log in with. On a local master it never leaves the machine. Elsewhere Spark
sends it over the network, in plain text unless told otherwise, to whoever takes part. So both are asked for: that Spark
knows its own (`spark.authenticate`) and that it encrypts (`spark.network.crypto.enabled` or `spark.ssl.rpc.enabled`).
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENCRYPTIONS = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
REFUSAL = (
    "This Spark would send passwords and keys to its executors in plain text. Set spark.authenticate=true and"
    " spark.network.crypto.enabled=true (or spark.ssl.rpc.enabled=true) with --conf or in spark-defaults.conf; where"
    " the network is safe without, say heliograph.spark.unencrypted.secrets.allowed=true in the file."
)


def encrypts(conf: Callable[[str, str], str]) -> bool:
    """Whether Spark, by its settings as they count, sends payloads encrypted and to its own executors alone."""
    return _is_true(conf, "spark.authenticate") and any(_is_true(conf, name) for name in _ENCRYPTIONS)


def _is_true(conf: Callable[[str, str], str], name: str) -> bool:
    return conf(name, "false").strip().lower() == "true"


def carries_secrets(value: object) -> bool:
    """Whether a value, or one inside of it, has a secret: a text of a dataclass that does not show in its repr.

    Certificates are long rather than secret.
    """
    return any(True for _secret in secrets_of(value))


def secrets_of(value: object) -> Iterator[str]:
    """Every secret of a value, or of one inside of it, as `carries_secrets` knows it."""
    for part in value if isinstance(value, tuple) else ():
        yield from secrets_of(part)
    for field in fields(value) if is_dataclass(value) else ():
        part = getattr(value, field.name)
        if field.repr or not field.metadata.get("is_secret", True):
            yield from secrets_of(part)
        elif part:
            yield from _texts(part)


def _texts(value: object) -> Iterator[str]:
    """A secret's texts; one of another type counts as a text, too."""
    for part in value if isinstance(value, tuple) else ():
        yield from _texts(part)
    if not isinstance(value, tuple):
        yield value if isinstance(value, str) else repr(value)
