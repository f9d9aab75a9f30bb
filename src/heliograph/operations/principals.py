"""Derives the principal under which a cluster knows a client, as its ACLs name it.

With PLAIN and SCRAM it is the user name, with TLS the subject of the certificate, unless the brokers have mapping
rules; without authentication it is `User:ANONYMOUS`. A token or a ticket is mapped by rules that only the brokers know.
Secrets are not needed: an unresolved placeholder matters only if it stands for the name itself.

Invariant: a principal that is not known has a name that no user has, and a sentence that says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config.keys import client_keys, security_keys
from heliograph.config.resolve.jaas import one_module
from heliograph.config.resolve.settings import Unresolved
from heliograph.errors import ConfigError, KeyStoreError
from heliograph.kafka.security.keystores import Stores, own_subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.config.keys.table import Key
    from heliograph.config.resolve.settings import Settings


ANONYMOUS = "User:ANONYMOUS"
_USER_NAMES = ("PLAIN", "SCRAM-")
_OTHER_LOGIN_KEYS = (security_keys.OAUTH_CLIENT_ID, security_keys.OAUTH_TOKEN_ENDPOINT_URL)
_CERTIFICATE_KEYS = {
    "key_file": client_keys.SSL_KEYSTORE_LOCATION,
    "key_store_password": security_keys.SSL_KEYSTORE_PASSWORD,
    "key_password": client_keys.SSL_KEY_PASSWORD,
}


@dataclass(frozen=True)
class KafkaPrincipal:
    """A principal; `doubt` is a sentence that says why it is not known, or not certain.

    Principals that are not known are distinguished by the text that hides the name (`hidden_in`).
    """

    name: str
    doubt: str = ""
    is_known: bool = True
    hidden_in: str = field(default="", repr=False)

    @property
    def identity(self) -> tuple[str, str]:
        """The value that two clients of a cluster have in common if they are the same principal."""
        return ("", self.hidden_in) if self.hidden_in else (self.name, "")


def parse_principals(options: Sequence[str]) -> dict[str, str]:
    """Parse `ALIAS=User:x` and `ALIAS.ROLE=User:x` into a map; a name without a type is a `User:`."""
    given = {}
    for option in options:
        alias, equals, principal = (part.strip() for part in option.partition("="))
        if not equals or not alias or not principal:
            raise ConfigError(f"--principal {option}: write it as CLUSTER=User:name, as in source=User:mirror.")
        given[alias] = principal if principal.partition(":")[0].isalpha() and ":" in principal else f"User:{principal}"
    return given


def principal_of(client: Settings, alias: str, role: str, given: Mapping[str, str]) -> KafkaPrincipal:
    """Return the principal of a cluster's client in a role; raises ConfigError if its login is written wrongly."""
    override = given.get(f"{alias}.{role}") or given.get(alias)
    if override is not None:
        return KafkaPrincipal(override)
    key = client_keys.SECURITY_PROTOCOL
    if why := _unresolved(client, key):
        return _unknown(client, key, alias, why)
    protocol = client[key].upper()
    if protocol == "PLAINTEXT":
        return KafkaPrincipal(ANONYMOUS)
    return _of_certificate(client, alias) if protocol == "SSL" else _of_login(client, alias)


def _of_login(client: Settings, alias: str) -> KafkaPrincipal:
    key = client_keys.SASL_MECHANISM
    if why := _unresolved(client, key):
        return _unknown(client, key, alias, why)
    mechanism = client[key].upper()
    if mechanism.startswith(_USER_NAMES):
        return _of_user_name(client, alias)
    key = client_keys.SASL_JAAS_CONFIG if client_keys.SASL_JAAS_CONFIG in client else key
    why = f"{client.written_as(key)}: the brokers of '{alias}' map a login with {mechanism} by their own rules."
    return _unknown(client, key, alias, why, _OTHER_LOGIN_KEYS)


def _of_user_name(client: Settings, alias: str) -> KafkaPrincipal:
    key = client_keys.SASL_JAAS_CONFIG
    name, why = client.written_as(key), _unresolved(client, key)
    try:
        options = one_module(client.values.get(key.name, ""), name).options
    except ConfigError:
        if not why:
            raise
        return _unknown(client, key, alias, why)
    user = options.get("username", "")
    if why and ("${" in user or not user):
        return _unknown(client, key, alias, why)
    if not user:
        raise ConfigError(f"there is no username, which is the principal on '{alias}'; add it.", name)
    if options.get("tokenauth", "").lower() == "true":
        return _unknown(
            client, key, alias, f"{name}: a delegation token has the principal of its owner, who is not named."
        )
    return KafkaPrincipal(f"User:{user}")


def _of_certificate(client: Settings, alias: str) -> KafkaPrincipal:
    chain, location = security_keys.SSL_KEYSTORE_CERTIFICATE_CHAIN, client_keys.SSL_KEYSTORE_LOCATION
    if not any(client.values.get(key.name, "").strip() for key in (chain, location)):
        return KafkaPrincipal(ANONYMOUS)
    key = chain if client.values.get(chain.name, "").strip() else location
    used = {"chain_pem": chain} if key is chain else _CERTIFICATE_KEYS
    missing = [why for each in used.values() if (why := _unresolved(client, each))]
    if missing:
        return _unknown(client, key, alias, missing[0])
    written = tuple((each.name, client.written_as(each)) for each in used.values())
    try:
        subject = own_subject(Stores(written=written, **{field: client[each] for field, each in used.items()}))
    except KeyStoreError as error:
        name, path = client.written_as(key), client.values.get(key.name, "")
        shown = client.raw.get(key.name, path)  # what came out of a placeholder is not shown
        store = f"{name}={shown}" if error.store == f"{name}={path}" else error.store
        return _unknown(client, key, alias, str(KeyStoreError(error.reason, store)))
    doubt = (
        f"{client.written_as(key)}: User:{subject} is the subject of the certificate; if the brokers of '{alias}'"
        f" have ssl.principal.mapping.rules, say what they make of it with --principal {alias}=User:name."
    )
    return KafkaPrincipal(f"User:{subject}", doubt)


def _unknown(client: Settings, key: Key[str], alias: str, why: str, others: Sequence[Key[str]] = ()) -> KafkaPrincipal:
    doubt = f"{why.rstrip('.')}; so the principal is not known. Say it with --principal {alias}=User:name."
    hidden_in = "\n".join(client.raw.get(each.name) or client.values.get(each.name, "") for each in (key, *others))
    return KafkaPrincipal(f"User:<the user of {client.written_as(key)}>", doubt, is_known=False, hidden_in=hidden_in)


def _unresolved(client: Settings, key: Key[str]) -> str:
    text = client.values.get(key.name, "")
    return str(text.why) if isinstance(text, Unresolved) else ""
