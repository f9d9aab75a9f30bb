"""Redaction: a configuration, a text or an error without its secrets. All output of configuration goes through it.

Hidden are the values of the table's PASSWORD keys with any prefix, of keys whose name sounds secret, and the secret
parts of other values: `password=...` as in a JAAS line, `sig=...` as in a shared access signature, credentials in a
URL, before an address, or after `Basic` and `Bearer`, private keys in PEM text. A name can be a secret, too: a JAAS
line or a key in PEM whose line breaks lack their backslash becomes "keys" of the file. Errors that are not raised on
purpose are shown by `unexpected` and `trace_of`: their text has any origin.

Text of any length is searched, so every expression here passes over it once: a run of characters is taken whole (`++`),
and is not tried again from its middle (`(?<!...)`).
Invariant: when in doubt, hidden. A placeholder such as `${file:...}` names a secret without being one and is shown.
"""

from __future__ import annotations

import base64
import binascii
import re
import traceback
from typing import TYPE_CHECKING

from heliograph.config.keys import TABLE
from heliograph.config.keys.table import PASSWORD
from heliograph.config.secrets.known_secrets import HIDDEN, hide_known
from heliograph.config.secrets.placeholder_text import is_only_placeholders, replace_placeholders

if TYPE_CHECKING:
    from collections.abc import Mapping


_WORDS = (
    r"password|passwd|passphrase|pwd|secret|credential|token|jaas|api[._-]?key|access[._-]?key|private[._-]?key"
    r"|auth(?:orization)?(?![a-z])|bearer|signature(?!\.algorithm)"
)
_SECRET_NAME = re.compile(_WORDS, re.IGNORECASE)
_SCHEMES = r"basic|bearer|negotiate|digest|token|ntlm|kerberos|apikey"
# `password="p"`, `password = 'p'`, `client.secret=p;`, `"password": "p"` and `Authorization: Basic p` inside of a text.
_SECRET_OPTION = re.compile(
    rf"""((?<![\w.-])(?:(?=[\w.-]*?(?:{_WORDS}))[\w.-]++|sig)["']?\s*+[=:]\s*+)((?:{_SCHEMES})[ \t]++)?"""
    r"""("(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[^\s;,&]++)""",
    re.IGNORECASE,
)
# What one negotiates in prose is a version or a protocol; a ticket is much longer.
_HTTP_CREDENTIALS = re.compile(
    r"""\b((?:basic|bearer|negotiate(?=[ \t]++\S{16}))[ \t]++)(?!realm=)(\$\{[^}$]*+\}|[^\s"',;&]++)""",
    re.IGNORECASE,
)
_PROSE = re.compile(r"(?:[A-Z]{2,4}|(?=.{1,16}$)[A-Za-z][a-z]*(?:-[a-z]+)*)")
_BEFORE_AT = re.compile(r"(?<![^\s@])[^\s@]++@")
_URL_START = re.compile(r"\w://(?!@)")  # a password may have a slash, although it ought not to
_ADDRESS = re.compile(r"(?:[\w.-]++|\[[\da-f:.]++\]):\d", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_NOT_IN_NAMES = re.compile(r"""["';+=(){}]|PRIVATE KEY""")
_LONGEST_PLAIN_NAME = 32  # a line of PEM has 64 letters and no dot
_MOST_PARTS = max(name.count(".") for name in TABLE) + 1


def redact(values: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration without secrets."""
    return {name: redact_value(name, value) for name, value in values.items()}


def redact_value(name: str, value: str) -> str:
    """Return one value without secrets, by its name with any prefix."""
    if not value or is_only_placeholders(value):
        return value
    if is_secret(name):
        return HIDDEN
    return redact_text(value)


def redact_text(text: str) -> str:
    """Return a text of any origin, such as a stack trace, without what looks like a secret in it."""
    shown = _PRIVATE_KEY.sub(HIDDEN, text)
    shown = _BEFORE_AT.sub(_without_credentials, shown)
    shown = _SECRET_OPTION.sub(lambda found: found[0] if _is_placeholder(found[3]) else f"{found[1]}{HIDDEN}", shown)
    return _HTTP_CREDENTIALS.sub(lambda found: found[0] if _is_harmless(found[2]) else f"{found[1]}{HIDDEN}", shown)


def public_text(config: Mapping[str, str]) -> str:
    """Return what a config does not hide: its names, and its values but for those of secret keys."""
    return "\n".join(text for name, value in config.items() for text in (name, "" if is_secret(name) else value))


def shown_name(name: str) -> str:
    """Return a name of the file, hidden if it is rather a part of a value that a line break has made a name."""
    is_torn_off = _NOT_IN_NAMES.search(name) is not None or ("." not in name and len(name) > _LONGEST_PLAIN_NAME)
    return HIDDEN if is_torn_off else name


def is_secret(name: str) -> bool:
    """Return whether the whole value of a key is a secret: by the table, or by the sound of its name."""
    parts = name.split(".")
    starts = range(max(0, len(parts) - _MOST_PARTS), len(parts))
    rows = {start: row for start in starts if (row := TABLE.get(".".join(parts[start:]))) is not None}
    if any(row.type is PASSWORD for row in rows.values()):
        return True
    # What the table knows is no secret, whatever it sounds like; the prefix before it may still say that it is.
    unknown = ".".join(parts[: min(rows)]) if rows else name
    return _SECRET_NAME.search(unknown) is not None


def _without_credentials(found: re.Match[str]) -> str:
    """Return the text before an `@` without credentials: after the beginning of a URL, or before an address."""
    start = _URL_START.search(found[0])
    if start:
        return f"{found[0][: start.end()]}{HIDDEN}@"
    before, comma, last = found[0].rpartition(",")
    is_login = ":" in last and _ADDRESS.match(found.string, found.end()) is not None
    return f"{before}{comma}{HIDDEN}@" if is_login else found[0]


def _is_placeholder(text: str) -> bool:
    return is_only_placeholders(text.strip("\"'"))


def _is_harmless(text: str) -> bool:
    """Return whether the text after `basic` or `bearer` is a placeholder, or a word rather than credentials."""
    word = text.strip("().:!?")
    return _is_placeholder(text) or (_PROSE.fullmatch(word) is not None and not _is_login(word))


def _is_login(text: str) -> bool:
    """Return whether a text that looks like a word is `user:password` in base 64, as `Mjow` is."""
    try:
        return b":" in base64.b64decode(text, validate=True)
    except binascii.Error:
        return False


def has_literal_secret(name: str, value: str) -> bool:
    """Return whether a value holds a secret in plain text."""
    if name.endswith("sasl.jaas.config") or not is_secret(name):
        return redact_value("text", value) != value
    if name.endswith(("ssl.truststore.certificates", "ssl.keystore.certificate.chain")):
        return "PRIVATE KEY" in value
    return bool(replace_placeholders(value, lambda _found: "").strip())


def unexpected(error: Exception) -> str:
    """Return one line about an error that is not raised on purpose."""
    return shown_error(f"unexpected {type(error).__name__}: {error}")


def trace_of(error: Exception) -> str:
    """Return the stack trace of an error; values of variables are not in it."""
    return shown_error("".join(traceback.format_exception(error)))


def shown_error(text: str) -> str:
    """Return the text of an error without secrets."""
    return hide_known(redact_text(text))  # in this order: a password may be a word by which others are recognised
