"""Whom a cluster takes a client for: the principal that its ACLs name.

A user name is the principal of PLAIN and SCRAM, and nobody at all is `User:ANONYMOUS`. A certificate, a token or a
ticket is mapped to a principal by rules that only the brokers know; then the user has to say it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import client_keys
from heliograph.errors import ConfigError
from heliograph.kafka.security import make_security

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.config.types import Settings

ANONYMOUS = "User:ANONYMOUS"
_USER_NAMES = ("PLAIN", "SCRAM-")


def parse_principals(options: Sequence[str]) -> dict[str, str]:
    """`ALIAS=User:x` or `ALIAS.ROLE=User:x`, as a map; a name without a type is a `User:`."""
    given = {}
    for option in options:
        alias, equals, principal = (part.strip() for part in option.partition("="))
        if not equals or not alias or not principal:
            raise ConfigError(f"--principal {option}: write it as CLUSTER=User:name, as in source=User:mirror.")
        given[alias] = principal if principal.partition(":")[0].isalpha() and ":" in principal else f"User:{principal}"
    return given


def principal_of(client: Settings, alias: str, role: str, given: Mapping[str, str]) -> str:
    """The principal of a cluster's client in a role; raises ConfigError where only the user can know it."""
    said = given.get(f"{alias}.{role}") or given.get(alias)
    if said is not None:
        return said
    protocol = client[client_keys.SECURITY_PROTOCOL].upper()
    mechanism = client[client_keys.SASL_MECHANISM].upper()
    if protocol == "PLAINTEXT":
        return ANONYMOUS
    if protocol.startswith("SASL_") and mechanism.startswith(_USER_NAMES):
        return f"User:{make_security(client, alias).username}"
    way = mechanism if protocol.startswith("SASL_") else "a client certificate"
    raise ConfigError(
        f"{client.written_as(client_keys.SECURITY_PROTOCOL)}: whom the brokers of '{alias}' take us for with {way} is"
        f" their own rule; say it with --principal {alias}=User:name."
    )
