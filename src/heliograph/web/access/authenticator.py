"""Authenticates the callers of REST, as the file configures it, and gives each its permissions.

If a file asks for neither a login nor certificates, everyone may do everything, as in Connect. If callers are
authenticated, the caller of a request that another worker forwards is taken from that worker's signature.
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


class RequestHead(NamedTuple):
    """A request without its body; `target` is its path with the query, `certificate` the client's, as DER."""

    method: str
    target: str
    headers: Mapping[str, str]
    certificate: bytes | None = None


class Authenticator:
    """Decides who may call. It reads every file that the configuration names; an unusable one raises ConfigError."""

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
        """The `WWW-Authenticate` header for a refused caller; None if there is no login."""
        return None if self._users is None else 'Basic realm="Connect"'

    @property
    def knows_callers(self) -> bool:
        """Return whether callers are authenticated, by a login or by a certificate."""
        return self._access.knows_callers

    @property
    def forwarding_tls(self) -> ssl.SSLContext | None:
        """The TLS context for an https leader; None if this worker has no https listener, and so no keys for it."""
        return None if self._forwarding_tls is None else self._forwarding_tls.get()

    def enter(self, access: Access, head: RequestHead, herder: HerderView) -> RestCaller:
        """Return the caller; raise the refusal of one that is not let in."""
        if access is Access.NOTHING or not self._access.knows_callers:
            return RestCaller()
        header = head.headers.get(HEADER)
        vouched = None
        if header is not None:
            vouched = self._forwards.verify(header, head.method, head.target, herder.session_keys())
        principal = self._principal(head) if vouched is None else vouched.principal
        if self._rules is None:
            return RestCaller(principal, vouched=vouched)
        if principal is None:
            raise UNAUTHORIZED.error()
        return caller_of(principal, self._rules.get(), self._resolver, vouched)

    def pass_on(self, caller: RestCaller, head: RequestHead, body: bytes, herder: HerderView) -> dict[str, str]:
        """Return the headers that identify the caller to the leader; signed if callers are authenticated."""
        if not self._access.knows_callers:
            return {name: head.headers[name] for name in ("authorization",) if name in head.headers}
        key = herder.session_keys()[0]
        return {HEADER: sign(caller.principal, head.method, head.target, body, key)}

    def _principal(self, head: RequestHead) -> CallerIdentity | None:
        """Return the identity by login if there is one, else by certificate; None for an anonymous caller."""
        if self._users is not None:
            return self._users.principal(head.headers.get("authorization"))
        return None if head.certificate is None else subject_of(head.certificate)


def read_rules(path: str) -> AccessRules:
    """Read the rules of a file; raise ConfigError with every problem."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(f"{path}: REST's rules need this file, and it cannot be read: {reason}.") from None
    return parse_rules(text, path)
