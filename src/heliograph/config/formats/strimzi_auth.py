"""Reads `tls` and `authentication` of a cluster in a resource as the client keys of a properties file.

Certificates and passwords stay placeholders. OAuth is written with Kafka's own `sasl.oauthbearer.*` keys, not with
those of the operator's Java library; what Kafka's client cannot do is a problem. The mechanism itself is checked later,
as for a properties file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.formats.strimzi_fields import check_fields

if TYPE_CHECKING:
    from heliograph.config.formats.reading import Reading
    from heliograph.config.formats.strimzi_secrets import Secrets
    from heliograph.config.syntax.yaml_tree import Tree


_MODULES = "org.apache.kafka.common.security"
_OAUTH_MODULE = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule"
PASSWORD_TYPES = {
    "plain": ("PLAIN", f"{_MODULES}.plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", f"{_MODULES}.scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", f"{_MODULES}.scram.ScramLoginModule"),
}
TYPES = ("tls", *PASSWORD_TYPES, "oauth", "custom")
CUSTOM_PREFIXES = ("sasl.", "ssl.keystore.")

_OAUTH_KEYS = {
    "tokenEndpointUri": "sasl.oauthbearer.token.endpoint.url",
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "scope": "sasl.oauthbearer.scope",
    "connectTimeoutSeconds": "sasl.login.connect.timeout.ms",
    "readTimeoutSeconds": "sasl.login.read.timeout.ms",
    "httpRetryPauseMs": "sasl.login.retry.backoff.ms",
}
_OAUTH_REFUSED = {
    "refreshToken": "a refresh token",
    "username": "a user name and password",
    "passwordSecret": "a user name and password",
    "clientAssertion": "a client assertion",
    "clientAssertionLocation": "a client assertion",
    "clientAssertionType": "a client assertion",
}
_OAUTH_IGNORED = {
    "audience": "Kafka's OAuth client asks for no audience; ask for it by `scope` if the server allows that",
    "httpRetries": "a login is tried again until it succeeds",
    "maxTokenExpirySeconds": "a token's own life counts",
    "accessTokenIsJwt": "a token is passed on as it is",
    "enableMetrics": "it is about metrics of the operator's Java library",
    "includeAcceptHeader": "the header is always sent",
    "tlsTrustedCertificates": "the token's server is trusted by the certificates of this machine",
    "disableTlsHostnameVerification": "the name of the token's server is always checked",
    "grantType": "client credentials are the grant that is used",
}


class StrimziAuthentication:
    """Reads the security of one cluster; `keys` are client keys, each with the part of the document it comes from."""

    def __init__(self, reading: Reading, secrets: Secrets) -> None:
        self._reading = reading
        self._secrets = secrets
        self.keys: dict[str, tuple[str, Tree]] = {}

    def read(self, cluster: Tree) -> None:
        """Fill `keys` from a cluster's `tls` and `authentication`."""
        tls, authentication = cluster.get("tls"), cluster.get("authentication")
        is_sasl = False
        if tls is not None:
            self._trust(tls)
        if authentication is not None:
            is_sasl = self._authenticate(authentication)
        if tls is None and not is_sasl:
            if "ssl.keystore.key" in self.keys and authentication is not None:
                words = "without TLS the client certificate is not used; add 'tls: {}' to the cluster."
                self._reading.warn(authentication, words)
            return
        protocol = f"SASL_{'SSL' if tls is not None else 'PLAINTEXT'}" if is_sasl else "SSL"
        origin = authentication if is_sasl else tls
        assert origin is not None
        self.keys["security.protocol"] = (protocol, origin)

    def _trust(self, tls: Tree) -> None:
        check_fields(self._reading, tls, ("trustedCertificates",))
        listed = tls.get("trustedCertificates")
        if listed is None:
            return
        found: list[str] = []
        for source in listed.items:
            check_fields(self._reading, source, ("secretName", "certificate", "pattern"))
            found += self._certificates(source)
        if found:
            self.keys["ssl.truststore.type"] = ("PEM", listed)
            self.keys["ssl.truststore.certificates"] = ("\n".join(found), listed)

    def _certificates(self, source: Tree) -> list[str]:
        secret, certificate, pattern = (source.get(name) for name in ("secretName", "certificate", "pattern"))
        if secret is None or (certificate is None) == (pattern is None):
            self._reading.problem(source, "it needs a secretName, and either a certificate or a pattern.")
            return []
        if certificate is not None:
            names = [certificate.text]
        else:
            assert pattern is not None
            names = self._secrets.matching(self._reading, pattern, secret.text, pattern.text)
        found = (self._secrets.reference(self._reading, source, secret.text, name) for name in names)
        return [placeholder for placeholder in found if placeholder]

    def _authenticate(self, tree: Tree) -> bool:
        """Read `authentication`; whether it uses SASL."""
        kind = tree.get("type")
        if kind is None or kind.text not in TYPES:
            given = f"'{kind.text}' is not one" if kind is not None else "there is none"
            self._reading.problem(kind or tree, f"{given} of the types of authentication: {', '.join(TYPES)}.")
            return False
        if kind.text == "tls":
            self._client_certificate(tree)
            return False
        if kind.text == "custom":
            return self._custom(tree)
        if kind.text == "oauth":
            self._oauth(tree)
        else:
            self._password(tree, kind.text)
        return True

    def _client_certificate(self, tree: Tree) -> None:
        check_fields(self._reading, tree, ("type", "certificateAndKey"))
        source = tree.get("certificateAndKey")
        parts = {name: source and source.get(name) for name in ("secretName", "certificate", "key")}
        missing = [name for name, part in parts.items() if part is None]
        if source is None or missing:
            self._reading.problem(source or tree, f"certificateAndKey needs {', '.join(missing)}.")
            return
        check_fields(self._reading, source, tuple(parts))
        secret = source.fields["secretName"].text
        for field, name in (("certificate", "ssl.keystore.certificate.chain"), ("key", "ssl.keystore.key")):
            placeholder = self._secrets.reference(self._reading, source, secret, source.fields[field].text)
            if placeholder:
                self.keys["ssl.keystore.type"] = ("PEM", source)
                self.keys[name] = (placeholder, source)

    def _password(self, tree: Tree, kind: str) -> None:
        check_fields(self._reading, tree, ("type", "username", "passwordSecret"))
        mechanism, module = PASSWORD_TYPES[kind]
        self.keys["sasl.mechanism"] = (mechanism, tree.fields["type"])
        username, source = tree.get("username"), tree.get("passwordSecret")
        password = self._secret_key(source, "password")
        if username is None or source is None:
            missing = "username" if username is None else "passwordSecret"
            self._reading.problem(tree, f"{missing} is missing for the type {kind}.")
        elif password:
            line = f'{module} required username="{_quoted(username.text)}" password="{password}";'
            self.keys["sasl.jaas.config"] = (line, source)

    def _secret_key(self, source: Tree | None, name: str) -> str | None:
        """The placeholder for `{secretName, NAME}`."""
        if source is None:
            return None
        secret, key = source.get("secretName"), source.get(name)
        if secret is None or key is None:
            self._reading.problem(source, f"it needs a secretName and a {name}.")
            return None
        check_fields(self._reading, source, ("secretName", name))
        return self._secrets.reference(self._reading, source, secret.text, key.text)

    def _oauth(self, tree: Tree) -> None:
        known = ("type", *_OAUTH_KEYS, *_OAUTH_REFUSED, "clientSecret", "accessToken", "accessTokenLocation")
        check_fields(self._reading, tree, (*known, "saslExtensions"), _OAUTH_IGNORED)
        kind = tree.fields["type"]
        self.keys["sasl.mechanism"] = ("OAUTHBEARER", kind)
        self.keys["sasl.login.callback.handler.class"] = (
            f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
            kind,
        )
        for name, what in _OAUTH_REFUSED.items():
            field = tree.get(name)
            if field is not None:
                words = f"Kafka's OAuth client cannot log in with {what}; use clientId and clientSecret."
                self._reading.problem(field, words)
        for name, key in _OAUTH_KEYS.items():
            field = tree.get(name)
            if field is not None:
                self.keys[key] = (_in_ms(field) if name.endswith("Seconds") else field.text, field)
        self._tokens(tree)
        extensions = tree.get("saslExtensions")
        options = "".join(
            f' extension_{name}="{_quoted(value.text)}"'
            for name, value in (extensions.fields if extensions else {}).items()
        )
        self.keys["sasl.jaas.config"] = (f"{_OAUTH_MODULE} required{options};", kind)

    def _tokens(self, tree: Tree) -> None:
        secret = tree.get("clientSecret")
        if secret is not None and (placeholder := self._secret_key(secret, "key")):
            self.keys["sasl.oauthbearer.client.credentials.client.secret"] = (placeholder, secret)
        location, token = tree.get("accessTokenLocation"), tree.get("accessToken")
        if location is not None:
            self.keys["sasl.oauthbearer.token.endpoint.url"] = (f"file://{location.text}", location)
        elif token is not None and self._secret_key(token, "key"):
            path = f"{self._secrets.path}/{token.fields['secretName'].text}/{token.fields['key'].text}"
            self.keys["sasl.oauthbearer.token.endpoint.url"] = (f"file://{path}", token)

    def _custom(self, tree: Tree) -> bool:
        check_fields(self._reading, tree, ("type", "sasl", "config"))
        sasl, config = tree.get("sasl"), tree.get("config")
        for name, field in (config.fields if config is not None else {}).items():
            if not field.is_scalar:
                self._reading.problem(field, "it must be text, a number, true or false.")
                continue
            if not name.startswith(CUSTOM_PREFIXES):
                allowed = " or ".join(f"'{prefix}'" for prefix in CUSTOM_PREFIXES)
                self._reading.warn(field, f"the operator only takes keys that begin with {allowed} here.")
            self.keys[name] = (self._secrets.rewritten(field.text), field)
        return sasl is not None and sasl.text == "true"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _in_ms(field: Tree) -> str:
    return f"{field.text}000" if field.text.isdigit() else field.text
