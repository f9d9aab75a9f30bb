"""Where secrets may travel: only between parts of one Spark that prove themselves to each other, and encrypted.

A task's payload holds what its clients log in with, and Spark hands it out on ports of its own, also on a local master:
to every user of the machine, unless it asks for a proof (`spark.authenticate`). So that is on by default wherever the
parts of a Spark can share a secret without the user's help. Away from this machine the payload must be encrypted too
(`spark.network.crypto.enabled` or `spark.ssl.rpc.enabled`), or the user says that it need not.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from heliograph.executor.contract.task_spec import secrets_of

if TYPE_CHECKING:
    from collections.abc import Callable


_AUTHENTICATE = "spark.authenticate"
_SECRET = "spark.authenticate.secret"  # noqa: S105  (the name of a setting)
_SECRET_BYTES = 32
_ENCRYPTIONS = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
REFUSAL = (
    "This Spark would send passwords and keys to its executors in plain text. Set spark.authenticate=true and"
    " spark.network.crypto.enabled=true (or spark.ssl.rpc.enabled=true) with --conf or in spark-defaults.conf; where"
    " the network is safe without, say heliograph.spark.unencrypted.secrets.allowed=true in the file."
)
OPEN_PORTS = (
    "spark.authenticate is not true: everyone who can reach the ports of this Spark, other users of this machine"
    " included, can read its tasks, with the passwords and keys in them. Remove spark.authenticate=false; for a"
    " standalone master set spark.authenticate=true and the master's spark.authenticate.secret in spark-defaults.conf."
)


def authentication(master: str, conf: Callable[[str, str], str]) -> dict[str, str]:
    """The settings that have the parts of a Spark prove themselves, where the user's own say nothing about it.

    Spark itself makes and hands on the secret of a local master (inside one process), on YARN and on Kubernetes. For
    `local-cluster`, whose executors are children of the driver, we make it. The secret of a standalone master is its
    administrator's: with another one, or with one where the master has none, no connection comes about.
    """
    if conf(_AUTHENTICATE, ""):
        return {}
    if is_local(master):
        return {_AUTHENTICATE: "true"}
    if master != "yarn" and not master.startswith(("k8s://", "local-cluster[")):
        return {}
    settings = {_AUTHENTICATE: "true"}
    if not any(conf(name, "") for name in _ENCRYPTIONS):
        settings[_ENCRYPTIONS[0]] = "true"
    if master.startswith("local-cluster[") and not conf(_SECRET, ""):
        settings[_SECRET] = secrets.token_hex(_SECRET_BYTES)
    return settings


def is_local(master: str) -> bool:
    """Whether executors are on this machine, inside the driver's JVM."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def authenticates(conf: Callable[[str, str], str]) -> bool:
    """Whether Spark, by its settings as they count, answers only those who know its secret."""
    return _is_true(conf, _AUTHENTICATE)


def encrypts(conf: Callable[[str, str], str]) -> bool:
    """Whether Spark, by its settings as they count, sends payloads encrypted and to its own executors alone."""
    return authenticates(conf) and any(_is_true(conf, name) for name in _ENCRYPTIONS)


def _is_true(conf: Callable[[str, str], str], name: str) -> bool:
    return conf(name, "false").strip().lower() == "true"


def carries_secrets(value: object) -> bool:
    """Whether a value, or one inside of it, has a secret: a text of a dataclass that does not show in its repr.

    Certificates are long rather than secret.
    """
    return any(True for _secret in secrets_of(value))
