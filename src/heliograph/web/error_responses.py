"""The refusals of the REST API itself, in one table, and the response for any error.

Connect's own refusals are in `connect/contract/refusals`. Here are those of the web server around it, with the messages
of Jersey and Jetty, and those of unreadable bodies. Java answers the latter with 500 and the message of its JSON
library, or with a null pointer; the status is kept for scripts, the message is ours and names the fault.

Invariant: every refusal is `{"error_code":STATUS,"message":TEXT}`. The response for an unforeseen error has no details,
since they might contain a secret; the log has them, without secrets.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from heliograph.config.resolve.redaction import trace_of
from heliograph.config.secrets.known_secrets import hide_known
from heliograph.connect.contract import refusals
from heliograph.connect.contract.refusals import RestRefusal
from heliograph.errors import ConnectError, HeliographError
from heliograph.web.exchange import RestResponse, json_answer

if TYPE_CHECKING:
    from collections.abc import Callable


_log = logging.getLogger(__name__)
_LONGEST_MESSAGE = 1 << 14  # characters; a caller knows the long value that it sent

# --- the web server -------------------------------------------------------------------------------
UNAUTHORIZED = RestRefusal(
    401,
    "User cannot access the resource.",
    "the login is on, and the request has none, or not the right one",
)
NOT_LET_IN = RestRefusal(
    403, "No rule of this worker names {who}.", "`heliograph.rest.rules.file` does not name the caller"
)
MAY_NOT = RestRefusal(
    403, "The {who} may not {what}.", "no rule of `heliograph.rest.rules.file` allows the caller's request"
)
UNKNOWN_HOST = RestRefusal(
    403,
    "The Host header names none of this worker's hosts; to allow it, add it to heliograph.rest.allowed.hosts.",
    "`Host` is not one of those that `heliograph.rest.allowed.hosts` describes: a web page may have sent the request",
)
FOREIGN_ORIGIN = RestRefusal(
    403,
    "A page of another origin may not change anything; to allow it, add its origin to access.control.allow.origin.",
    "`Origin` or `Sec-Fetch-Site` names another origin than this worker's, and the request does more than read",
)
NO_SUCH_PATH = RestRefusal(
    404, "HTTP 404 Not Found", "the path is none of those above, or a task's number is not a number"
)
NO_SUCH_METHOD = RestRefusal(405, "HTTP 405 Method Not Allowed", "the path does not take the method")
NOT_ACCEPTABLE = RestRefusal(406, "HTTP 406 Not Acceptable", "the `Accept` header leaves out application/json")
TOO_SLOW = RestRefusal(408, "HTTP 408 Request Timeout", "the body did not come within 30 seconds")
TOO_MANY_BODIES = RestRefusal(
    429,
    "HTTP 429 Too Many Requests",
    "the bodies of all requests under way have more than 16 MiB (4 MiB those of callers without a name); try again",
)
TOO_LARGE = RestRefusal(
    413,
    "HTTP 413 Request Entity Too Large",
    "the body has more than 2 MiB for configs, 4 MiB for offsets, 64 KiB for the rest",
)
UNSUPPORTED_MEDIA_TYPE = RestRefusal(
    415, "HTTP 415 Unsupported Media Type", "the `Content-Type` header is not application/json"
)
INTERNAL_ONLY = RestRefusal(
    400, "Internal request missing required signature", "an endpoint that Java's workers call among themselves"
)
READ_ONLY = RestRefusal(
    403,
    "The connectors of this process are defined by its file: change the file and start it again.",
    "a connector is created, deleted or configured through the REST API of `heliograph run`",
)
NO_ACTIONS = RestRefusal(
    403,
    "This process serves REST for reading only; start it with --rest-actions to allow this.",
    "a restart, a stop, new offsets or a log level through the REST API of `heliograph run` without `--rest-actions`",
)

# --- bodies ---------------------------------------------------------------------------------------
NO_BODY = RestRefusal(500, "The request has no body; it needs {expected}.", "the body is empty or null")
NOT_JSON = RestRefusal(500, "The body is not JSON: {reason} (line: {line}, column: {column}).", "the body is malformed")
WRONG_SHAPE = RestRefusal(500, "The body does not fit: {reason}.", "a member of the body has the wrong type or name")
TOO_MANY_VALUES = RestRefusal(
    413,
    "The body has more than {most} values; send fewer at a time.",
    "the body has too many objects, lists or members",
)

TOO_LONG = RestRefusal(
    400,
    "{what} has {length}; the limit is {most}.",
    "a config has more than 5,000 keys, a name of more than 1,000 characters or a value of more than 1,048,576",
)

# --- plugins and loggers --------------------------------------------------------------------------
UNKNOWN_PLUGIN = RestRefusal(404, "Unknown plugin {name}.", "config definitions of a plugin that is not there")
NO_SUCH_VERSION = RestRefusal(
    400,
    "Plugin {name} not found that matches the version range [{version},{version}], available versions: [{available}]",
    "config definitions of a version that is not there",
)
OTHER_TYPE = RestRefusal(
    400,
    "Included connector type {included} does not match request type {requested}",
    "validation of a config whose `connector.class` is not the plugin of the path, letter by letter",
)
UNKNOWN_LOGGER = RestRefusal(404, "Logger {name} not found.", "nobody logs under the name")
NO_LEVEL = RestRefusal(
    400, "Desired 'level' parameter was not specified in request.", "change of a logger without a level"
)
UNKNOWN_LEVEL = RestRefusal(404, "invalid log level '{level}'.", "change of a logger to a level that does not exist")
TOO_MANY_LOGGERS = RestRefusal(
    400,
    "Nobody logs under this name. Such names have at most {length} characters, and there are at most {most} of them.",
    "a level for a logger that is not there, with a long name or after many others",
)

# --- flows ----------------------------------------------------------------------------------------
WRONG_PARAMETER = RestRefusal(
    400, "The parameter '{name}' must be {expected}.", "a parameter of `/heliograph/v1` is not valid"
)

UNFORESEEN = RestRefusal(500, "Unexpected error: {kind}; see the worker's log.", "a fault of the worker itself")


def all_refusals() -> list[RestRefusal]:
    """Return every row of both tables, by status."""
    rows = [row for module in (vars(refusals), globals()) for row in module.values() if isinstance(row, RestRefusal)]
    return sorted(dict.fromkeys(rows), key=lambda row: row.status)


def answer_of(error: Exception, asked: Callable[[], str] | None = None) -> RestResponse:
    """Return the response for an error; `asked` returns the texts of the request, which are no secret to the caller."""
    if isinstance(error, ConnectError):
        refusal = error
    elif isinstance(error, HeliographError):
        refusal = ConnectError(500, str(error))
    else:
        _log.error("A REST request failed.\n%s", trace_of(error))
        refusal = UNFORESEEN.error(kind=type(error).__name__)
    message = hide_known(refusal.message, asked, _LONGEST_MESSAGE)
    return json_answer({"error_code": refusal.status, "message": message}, refusal.status)
