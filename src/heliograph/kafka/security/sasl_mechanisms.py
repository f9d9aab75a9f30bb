"""Names of the SASL mechanisms. Apart from `sasl`, so that checking a configuration does not load kafka-python."""

from __future__ import annotations

import importlib.util

LIBRARIES = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", *LIBRARIES)


def missing_library(mechanism: str) -> str | None:
    """Return the library that a mechanism needs and that is not installed."""
    library = LIBRARIES.get(mechanism)
    return library if library is not None and importlib.util.find_spec(library) is None else None
