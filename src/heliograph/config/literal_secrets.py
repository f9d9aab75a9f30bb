"""Which settings hold a secret itself, and not the name of one. Converting must not spread them unnoticed."""

from __future__ import annotations

from heliograph.config.placeholder_text import replace_placeholders
from heliograph.config.redaction import is_secret, redact_value


def has_literal_secret(name: str, value: str) -> bool:
    """Whether a value holds a secret in plain text."""
    if name.endswith("sasl.jaas.config") or not is_secret(name):
        return redact_value("text", value) != value
    if name.endswith(("ssl.truststore.certificates", "ssl.keystore.certificate.chain")):
        return "PRIVATE KEY" in value
    return bool(replace_placeholders(value, lambda _found: "").strip())
