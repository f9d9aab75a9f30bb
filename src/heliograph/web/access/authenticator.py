"""The door of REST: asks every caller who it is, as the file wants it, and says what it may do.

Where a file asks for neither a login nor certificates the door is open, as Connect's is: everyone may do everything.
Where callers have names, those of requests that another worker passes on are taken from its signature.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.effective.rest_config import RestAccess, https_settings
from heliograph.errors import ConfigError
from heliograph.web.access.access_rules import AccessRules, parse_rules
from heliograph.web.access.allowed_hosts import Hosts
from heliograph.web.access.callers import HEADER, Forwards, Users, sign, subject_of
from heliograph.web.access.guard import Access, RestCaller, caller_of
from heliograph.web.access.listener_tls import forwarding_context, listener_context
from heliograph.web.access.reloading import Renewed
from heliograph.web.error_responses import UNAUTHORIZED

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence

    from heliograph.config.effective.rest_config import RestListener
    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.connect.contract.herder import HerderView
    from heliograph.web.access.callers import CallerIdentity


class Arrival(NamedTuple):
    """A request before its body is read; `target` is its path with the query, `certificate` the client's, as DER."""

    method: str
    target: str
    headers: Mapping[str, str]
    certificate: bytes | None = None


class Authenticator:
    """Who may come in. Everything a file names is read here, and raises a sentence where it cannot be used."""

    def __init__(
        self,
        access: RestAccess | None = None,
        raw: Mapping[str, str] | None = None,
        resolver: Resolver | None = None,
        listeners: Sequence[RestListener] = (),
    ) -> None:
        self._access = access or RestAccess()
        self.hosts = Hosts(self._access)
        self._forwards = Forwards()
        self._resolver = resolver
        self._users = Users(self._access.jaas_file) if self._access.jaas_file else None
        rules_file = self._access.rules_file
        self._rules = Renewed([rules_file], lambda: read_rules(rules_file)) if rules_file else None
        self.listener_tls: ssl.SSLContext | None = None
        self._forwarding_tls: Renewed[ssl.SSLContext] | None = None
        if any(listener.is_https for listener in listeners):
            assert resolver is not None
            self.listener_tls = listener_context(lambda: https_settings(raw or {}, resolver), self._access.client_auth)
            self._forwarding_tls = forwarding_context(lambda: https_settings(raw or {}, resolver))

    @property
    def challenge(self) -> str | None:
        """What a refused caller is told to send, as HTTP has it; None where no login is asked for."""
        return None if self._users is None else 'Basic realm="Connect"'

    @property
    def knows_callers(self) -> bool:
        """Whether a caller has a name, by a login or by a certificate."""
        return self._access.knows_callers

    @property
    def forwarding_tls(self) -> ssl.SSLContext | None:
        """How an https leader is reached; None where this worker has no https listener, and so no keys for it."""
        return None if self._forwarding_tls is None else self._forwarding_tls.get()

    def enter(self, access: Access, arrival: Arrival, herder: HerderView) -> RestCaller:
        """Who calls; raises the refusal of who is not let in."""
        if access is Access.NOTHING or not self._access.knows_callers:
            return RestCaller()
        header = arrival.headers.get(HEADER)
        vouched = None
        if header is not None:
            vouched = self._forwards.verify(header, arrival.method, arrival.target, herder.session_keys())
        principal = self._principal(arrival) if vouched is None else vouched.principal
        if self._rules is None:
            return RestCaller(principal, vouched=vouched)
        if principal is None:
            raise UNAUTHORIZED.error()
        return caller_of(principal, self._rules.get(), self._resolver, vouched)

    def pass_on(self, caller: RestCaller, arrival: Arrival, body: bytes, herder: HerderView) -> dict[str, str]:
        """Headers that tell the leader who calls: as they came where callers have no names, else signed."""
        if not self._access.knows_callers:
            return {name: arrival.headers[name] for name in ("authorization",) if name in arrival.headers}
        key = herder.session_keys()[0]
        return {HEADER: sign(caller.principal, arrival.method, arrival.target, body, key)}

    def _principal(self, arrival: Arrival) -> CallerIdentity | None:
        """By the login where there is one, else by the certificate; None for somebody without a name."""
        if self._users is not None:
            return self._users.principal(arrival.headers.get("authorization"))
        return None if arrival.certificate is None else subject_of(arrival.certificate)


def read_rules(path: str) -> AccessRules:
    """The rules of a file; raises ConfigError with every problem."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(f"{path}: REST's rules need this file, and it cannot be read: {reason}.") from None
    return parse_rules(text, path)
