"""Tells the story of `rest_calls` to a worker and compares what two workers answered.

Same status and the same body, but for what must differ (`_OF_ITS_OWN`) and the order of lists; where a call says so,
only the shape: members of the same names with values of the same types. Hosts and ports are masked before. In shapes
each element of our lists must look like one of Java's; ours may be fewer.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from tests.interop.rest_calls import CALLS, RestCall, Settled

_PATIENCE_S = 180.0
_PAUSE_S = 0.2
_MOMENTARY = ("rebalance", "stale configuration")
_OF_ITS_OWN = {"commit", "kafka_cluster_id", "documentation", "last_modified"}
_OWN_DEFAULTS = {"refresh.topics.interval.seconds", "refresh.groups.interval.seconds"}  # docs/decisions/0005


class RestAnswer(NamedTuple):
    """What a worker answered; hosts and ports are masked."""

    status: int
    body: Any
    location: str | None = None
    is_text: bool = False


def report(url: str, bootstrap: str, expected: Mapping[str, RestAnswer] | None = None) -> dict[str, RestAnswer]:
    """Every call's answer, by its note.

    A worker answers from what it has read of its topics so far. Where `expected` answers are given, a call that changes
    nothing is repeated until its answer agrees, or patience ends.
    """
    return {call.note: _settled(url, bootstrap, call, (expected or {}).get(call.note)) for call in CALLS}


def _settled(url: str, bootstrap: str, call: RestCall, expected: RestAnswer | None) -> RestAnswer:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        answer = _reported(url, bootstrap, call)
        agrees = expected is None or _difference(call, expected, answer) is None
        if agrees or not call.is_repeatable or time.monotonic() > deadline:
            return answer
        time.sleep(_PAUSE_S)


def ask(
    url: str,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Any:
    """One request; status, headers and body."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=100)
    if tls is not None:
        connection = http.client.HTTPSConnection(place.hostname or "", place.port, timeout=100, context=tls)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def _reported(url: str, bootstrap: str, call: RestCall) -> RestAnswer:
    body = None if call.body is None else call.body.replace("{bootstrap}", bootstrap).encode()
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        status, headers, raw = ask(url, call.method, call.path, body, dict(call.headers))
        text = raw.decode().replace(bootstrap, "BOOTSTRAP").replace(urlsplit(url).netloc, "WORKER")
        is_momentary = status == 409 and any(words in text for words in _MOMENTARY)
        if not is_momentary or time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_S)
    if call.settled is not None:
        _wait(url, call.settled)
    is_text = (headers.get("content-type") or "").startswith("text/plain")
    location = (headers.get("location") or "").replace(urlsplit(url).netloc, "WORKER") or None
    return RestAnswer(status, text if is_text else json.loads(text) if text else None, location, is_text)


def _wait(url: str, settled: Settled) -> None:
    """Until the connector and the right number of tasks are in the state."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        status, _, raw = ask(url, "GET", f"/connectors/{quote(settled.connector)}/status")
        reported = json.loads(raw)
        if status == 404 and settled.state == "GONE":
            return
        if status == 200 and reported["connector"]["state"] == settled.state:
            states = [task["state"] for task in reported["tasks"]]
            if states == [settled.state] * settled.tasks:
                return
        assert time.monotonic() < deadline, f"{settled} was not reached: {reported}"
        time.sleep(0.1)


def differences(java: dict[str, RestAnswer], ours: dict[str, RestAnswer]) -> dict[str, str]:
    """What differs, by the note of each call that was not answered alike."""
    found = {call.note: _difference(call, java[call.note], ours[call.note]) for call in CALLS}
    return {note: problem for note, problem in found.items() if problem is not None}


def _difference(call: RestCall, java: RestAnswer, ours: RestAnswer) -> str | None:
    if java.status != ours.status:
        return f"Java answers {java.status} {java.body}, we {ours.status} {ours.body}"
    if java.location != ours.location:
        return f"Java's location is {java.location}, ours {ours.location}"
    if java.is_text or ours.is_text:
        same = java.is_text and ours.is_text and set(java.body.split(", ")) == set(ours.body.split(", "))
        return None if same else f"Java answers {java.body}, we {ours.body}"
    if call.own_words or call.shape_only:
        return _misfit(_shape(java.body), _shape(ours.body), "the body")
    if call.any_names:
        return _misfit(_shape(list(java.body.values())), _shape(list(ours.body.values())), "the body")
    java, ours = (answer._replace(body=in_short(call, answer.body)) for answer in (java, ours))
    java, ours = (answer._replace(body=_without(call.own_judgement, answer.body)) for answer in (java, ours))
    same = _comparable(java.body) == _comparable(ours.body)
    return None if same else f"Java answers {java.body}, we {ours.body}"


def in_short(call: RestCall, body: Any) -> Any:
    """What is written down and compared of an answer, where all the keys of a connector are too many."""
    if not call.in_short:
        return body
    if isinstance(body, list):
        return [each["name"] if isinstance(each, dict) else each for each in body]
    if "configs" not in body:
        return body
    return {**body, "configs": [each for each in body["configs"] if not _is_default(each)]}


def _is_default(config: dict[str, Any]) -> bool:
    definition, value = config["definition"], config["value"]
    if definition is None or value["errors"] or _is_named_plugin(config):
        return False
    return bool(value["value"] == definition["default_value"])


def _without(own_judgement: tuple[str, ...], body: Any) -> Any:
    """An answer of /validate without what it says of some keys; classes to choose from are Java's alone."""
    if not isinstance(body, dict) or "configs" not in body:
        return body
    dropped = 0
    configs = []
    for each in body["configs"]:
        value = {**each["value"], "recommended_values": []} if _is_named_plugin(each) else each["value"]
        if value["name"] in own_judgement:
            dropped += len(value["errors"])
            value = {"name": value["name"]}
        configs.append({"definition": each["definition"] if len(value) > 1 else None, "value": value})
    return {**body, "error_count": body["error_count"] - dropped, "configs": configs}


def _is_named_plugin(config: dict[str, Any]) -> bool:
    return bool(config["value"]["name"].startswith(("transforms.", "predicates.")))


def _is_forgotten(element: Any) -> bool:
    """Progress that was removed a moment ago: Java may list it without an offset until it has read its own record."""
    return isinstance(element, dict) and element.keys() == {"partition", "offset"} and element["offset"] is None


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("name") in _OWN_DEFAULTS:
            value = {**value, "default_value": "", "value": ""}
        return {name: name if name in _OF_ITS_OWN else _comparable(member) for name, member in value.items()}
    if isinstance(value, list):
        return sorted((_comparable(element) for element in value if not _is_forgotten(element)), key=str)
    return value


# --- shapes: the name of a type, a dict of shapes, or a set of those that were seen in a list -------------------------
def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shape(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_shape(element) for element in value]
    return type(value).__name__


def _misfit(java: Any, ours: Any, where: str) -> str | None:
    if isinstance(java, dict) and isinstance(ours, dict):
        if java.keys() != ours.keys():
            return f"{where} has the members {sorted(ours)}, in Java {sorted(java)}"
        problems = (_misfit(java[name], ours[name], f"{where}, {name}") for name in java)
        return next((problem for problem in problems if problem), None)
    if isinstance(java, list) and isinstance(ours, list):
        for element in ours:
            problems = [_misfit(seen, element, where) for seen in java]
            if all(problems):
                return problems[0] if problems else f"{where} is empty in Java, not here"
        return None
    return None if java == ours else f"{where} is {ours}, in Java {java}"
