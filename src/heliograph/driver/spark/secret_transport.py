"""Decides whether secrets may travel to executors: only if Spark's processes authenticate each other, and encrypted.

A task's payload holds the credentials of its clients, and Spark serves it on ports of its own, also on a local master:
to every user of the machine, unless it authenticates them (`spark.authenticate`). So that is on by default if Spark's
processes can share a secret without the user's help. On its way to another machine the payload must be encrypted as
well (`spark.network.crypto.enabled` or `spark.ssl.rpc.enabled`), unless the user allows it to be sent in plain text.
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
    " spark.network.crypto.enabled=true (or spark.ssl.rpc.enabled=true) with --conf or in spark-defaults.conf; if"
    " the network is safe without, set heliograph.spark.unencrypted.secrets.allowed=true in the file."
)
OPEN_PORTS = (
    "spark.authenticate is not true: everyone who can reach the ports of this Spark, other users of this machine"
    " included, can read its tasks, with the passwords and keys in them. Remove spark.authenticate=false; for a"
    " standalone master set spark.authenticate=true and the master's spark.authenticate.secret in spark-defaults.conf."
)


def authentication(master: str, conf: Callable[[str, str], str]) -> dict[str, str]:
    """Return settings by which Spark's processes authenticate each other; none if the user's own settings decide it.

    Spark itself generates and distributes the secret of a local master (inside one process), on YARN and on Kubernetes.
    For `local-cluster`, whose executors are child processes, we generate it. The administrator of a standalone master
    sets its secret: with any other, no connection succeeds.
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
    """Return whether executors are on this machine, inside the driver's JVM."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def authenticates(conf: Callable[[str, str], str]) -> bool:
    """Return whether Spark, by its effective settings, answers only peers that know its secret."""
    return _is_true(conf, _AUTHENTICATE)


def encrypts(conf: Callable[[str, str], str]) -> bool:
    """Return whether Spark, by its effective settings, sends payloads encrypted and only to its own executors."""
    return authenticates(conf) and any(_is_true(conf, name) for name in _ENCRYPTIONS)


def _is_true(conf: Callable[[str, str], str], name: str) -> bool:
    return conf(name, "false").strip().lower() == "true"


def carries_secrets(value: object) -> bool:
    """Return whether a value contains a secret: a text of a dataclass that is not shown in its repr.

    Certificates are not shown because they are long; they are not secret.
    """
    return any(True for _secret in secrets_of(value))
