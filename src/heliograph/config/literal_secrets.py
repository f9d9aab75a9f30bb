"""Which settings hold a secret itself, and not the name of one. Converting must not spread them unnoticed."""

from __future__ import annotations

import re

from heliograph.config.redaction import is_secret, redact_value

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")


def has_literal_secret(name: str, value: str) -> bool:
    """Whether a value holds a secret in plain text."""
    if name.endswith("sasl.jaas.config") or not is_secret(name):
        return redact_value("text", value) != value
    if name.endswith(("ssl.truststore.certificates", "ssl.keystore.certificate.chain")):
        return "PRIVATE KEY" in value
    return bool(_PLACEHOLDER.sub("", value).strip())
