"""Calls of Connect's REST API that Java's worker and ours must answer alike: one story, told in order.

`{bootstrap}` in a body stands for the cluster. A call may wait for a state of a connector afterwards, so that the next
one meets the same worker everywhere. The calls create what they need and leave nothing behind.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

JSON = (("Content-Type", "application/json"),)
MIRROR = "org.apache.kafka.connect.mirror"


class Settled(NamedTuple):
    """A state to wait for after a call, of the connector and of so many tasks; GONE when there is no status left."""

    connector: str
    state: str
    tasks: int = 0


class RestCall(NamedTuple):
    """One call. What is compared of the answer beside its status, unless all of it:

    `own_words`: the shape of the error; `shape_only`: the shape; `any_names`: the shape, whatever the names in the map;
    `own_judgement`: keys of which Heliograph says something else than Java, in the answer of /validate; `in_short`: of
    the keys of a connector, those that are not as they are by default, or their names alone.
    """

    note: str
    method: str
    path: str
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    own_words: bool = False
    shape_only: bool = False
    any_names: bool = False
    own_judgement: tuple[str, ...] = ()
    in_short: bool = False
    settled: Settled | None = None
    changes_nothing: bool = False  # whatever its method, it only shows the state the calls before it led to

    @property
    def is_repeatable(self) -> bool:
        """Whether the same call once more leaves the worker as it is."""
        return self.changes_nothing or self.method in ("GET", "HEAD", "OPTIONS")


def get(note: str, path: str, *, shape_only: bool = False, headers: tuple[tuple[str, str], ...] = ()) -> RestCall:
    return RestCall(note, "GET", path, headers=headers, shape_only=shape_only)


def send(note: str, method: str, path: str, payload: object = None, settled: Settled | None = None) -> RestCall:
    if payload is None:
        return RestCall(note, method, path, settled=settled)
    return RestCall(note, method, path, json.dumps(payload), JSON, settled=settled)


def validate(note: str, plugin: str, config: object, own_judgement: tuple[str, ...] = ()) -> RestCall:
    call = send(note, "PUT", f"/connector-plugins/{plugin}/config/validate", config)
    return call._replace(own_judgement=own_judgement)


def bad(note: str, method: str, path: str, body: str) -> RestCall:
    return RestCall(note, method, path, body, JSON, own_words=True)


def heartbeat(**more: object) -> dict[str, Any]:
    return {
        "connector.class": f"{MIRROR}.MirrorHeartbeatConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "{bootstrap}",
        "target.cluster.bootstrap.servers": "{bootstrap}",
        "heartbeats.topic.replication.factor": "1",
        "tasks.max": "1",
        **more,
    }


SOURCE = {
    "connector.class": "MirrorSource",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "{bootstrap}",
    "target.cluster.bootstrap.servers": "{bootstrap}",
    "topics": "rest-conformance",
    "offset-syncs.topic.replication.factor": 1,
    "replication.factor": 1,
    "sync.topic.acls.enabled": False,
}


def offset(topic: object = "t", partition: object = 0, position: object = 5) -> dict[str, Any]:
    return {"partition": {"cluster": "A", "partition": partition, "topic": topic}, "offset": {"offset": position}}


NOBODY = [
    get("the worker", "/"),
    RestCall("the worker, head only", "HEAD", "/"),
    get("health", "/health"),
    get("no connectors", "/connectors"),
    get("a slash at the end", "/connectors/"),
    RestCall("connectors, head only", "HEAD", "/connectors"),
    RestCall("options of a path", "OPTIONS", "/connectors"),
    get("no such path", "/nowhere"),
    get("no such path below one", "/connectors/x/nowhere"),
    get("a path that older releases had", "/connectors/x/tasks-config"),
    send("delete all", "DELETE", "/connectors"),
    send("post to the root", "POST", "/"),
    get("html wanted", "/connectors", headers=(("Accept", "text/html"),)),
    get("anything of application wanted", "/", headers=(("Accept", "text/html, application/*"),)),
    get("unknown: info", "/connectors/x"),
    RestCall("unknown: info, head only", "HEAD", "/connectors/x"),
    get("unknown: config", "/connectors/x/config"),
    get("unknown: status", "/connectors/x/status"),
    get("unknown: tasks", "/connectors/x/tasks"),
    get("unknown: task status", "/connectors/x/tasks/0/status"),
    get("unknown: task that is no number", "/connectors/x/tasks/abc/status"),
    send("unknown: restart of a task", "POST", "/connectors/x/tasks/0/restart"),
    send("unknown: restart of a task beyond all numbers", "POST", "/connectors/x/tasks/99999999999/restart"),
    send("unknown: restart", "POST", "/connectors/x/restart"),
    send("unknown: restart with tasks", "POST", "/connectors/x/restart?includeTasks=true"),
    send("unknown: pause", "PUT", "/connectors/x/pause"),
    send("unknown: resume", "PUT", "/connectors/x/resume"),
    send("unknown: stop", "PUT", "/connectors/x/stop"),
    get("unknown: topics", "/connectors/x/topics"),
    send("unknown: reset of topics", "PUT", "/connectors/x/topics/reset"),
    get("unknown: offsets", "/connectors/x/offsets"),
    send("unknown: change of offsets", "PATCH", "/connectors/x/offsets", {"offsets": [offset()]}),
    send("unknown: reset of offsets", "DELETE", "/connectors/x/offsets"),
    send("unknown: delete", "DELETE", "/connectors/x"),
    send("unknown: patch", "PATCH", "/connectors/x/config", {"a": "b"}),
    get("unknown: a name with a blank", "/connectors/nope%20blank"),
    send("internal: fence", "PUT", "/connectors/x/fence"),
    send("internal: tasks", "POST", "/connectors/x/tasks", []),
]

REFUSED = [
    bad("create: malformed", "POST", "/connectors", '{"name"'),
    bad("create: empty", "POST", "/connectors", ""),
    bad("create: null", "POST", "/connectors", "null"),
    bad("create: a list", "POST", "/connectors", "[]"),
    bad("create: a text", "POST", "/connectors", '"x"'),
    bad("create: nothing in it", "POST", "/connectors", "{}"),
    bad("create: no config", "POST", "/connectors", '{"name":"x"}'),
    bad("create: a config of text", "POST", "/connectors", '{"name":"x","config":"abc"}'),
    bad("create: a value that is a list", "POST", "/connectors", '{"name":"x","config":{"a":[1]}}'),
    bad("create: a name that is a list", "POST", "/connectors", '{"name":["x"],"config":{}}'),
    bad("create: an unknown member", "POST", "/connectors", '{"name":"x","config":{},"foo":1}'),
    bad("create: an unknown state", "POST", "/connectors", '{"name":"x","config":{},"initial_state":"FAST"}'),
    RestCall("create: as text", "POST", "/connectors", '{"name":"x"}', (("Content-Type", "text/plain"),)),
    RestCall("create: of no type", "POST", "/connectors", '{"name":"x"}'),
    send("create: without class", "POST", "/connectors", {"name": "x", "config": {}}),
    # Java shows its maps in an order of their own, and sometimes an exception's name before the words.
    bad("create: without class, with numbers", "POST", "/connectors", '{"name":5,"config":{"a":1.50,"b":true}}'),
    send("create: unknown class", "POST", "/connectors", {"name": "x", "config": {"connector.class": "Foo"}}),
    send(
        "create: another class of Kafka's",
        "POST",
        "/connectors",
        {"name": "x", "config": {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector"}},
    ),
    send(
        "create: two names",
        "POST",
        "/connectors",
        {"name": "x", "config": {"name": "y", "connector.class": "MirrorSource"}},
    ),
    send("create: no name", "POST", "/connectors", {"config": heartbeat()}),
    send("create: an empty name", "POST", "/connectors", {"name": "", "config": heartbeat()}),
    send("create: lacks a key", "POST", "/connectors", {"name": "x", "config": {"connector.class": "MirrorSource"}}),
    send(
        "create: wrong numbers",
        "POST",
        "/connectors",
        {"name": "x", "config": heartbeat(**{"tasks.max": "zero", "emit.heartbeats.interval.seconds": "x"})},
    ),
    send("create: a value that is null", "POST", "/connectors", {"name": "x", "config": heartbeat(foo=None)}),
    bad("put: malformed", "PUT", "/connectors/x/config", '{"a":'),
    bad("put: empty", "PUT", "/connectors/x/config", ""),
    bad("put: a list", "PUT", "/connectors/x/config", "[]"),
    bad("put: no number", "PUT", "/connectors/x/config", '{"a":NaN}'),
    bad("put: something behind", "PUT", "/connectors/x/config", '{"a":"b"} trailing'),
    bad("put: single quotes", "PUT", "/connectors/x/config", "{'a':1}"),
    send("put: without class", "PUT", "/connectors/x/config", {}),
    send("put: two names", "PUT", "/connectors/x/config", {"name": "y", "connector.class": "MirrorSource"}),
    bad("put: unknown class", "PUT", "/connectors/x/config", '{"connector.class":"Foo"}'),
    RestCall("put: as text", "PUT", "/connectors/x/config", "{}", (("Content-Type", "text/plain"),)),
    get("still no connectors", "/connectors"),
]

RUNNING = [
    send("create", "POST", "/connectors", {"name": "hb", "config": heartbeat()}, Settled("hb", "RUNNING", 1)),
    send("create again", "POST", "/connectors", {"name": "hb", "config": heartbeat()}),
    send(
        "create stopped",
        "POST",
        "/connectors",
        {"name": "src", "config": SOURCE, "initial_state": "STOPPED"},
        Settled("src", "STOPPED"),
    ),
    send(
        "create paused",
        "POST",
        "/connectors",
        {"name": "idle", "config": heartbeat(), "initial_state": "paused"},
        Settled("idle", "PAUSED"),
    ),
    get("expand nothing known", "/connectors?expand=foo"),
    get("expand status", "/connectors?expand=status"),
    get("expand info", "/connectors?expand=info"),
    get("expand both", "/connectors?expand=info&expand=status"),
    get("info", "/connectors/hb"),
    get("config", "/connectors/hb/config"),
    get("status", "/connectors/hb/status"),
    get("status of a stopped one", "/connectors/src/status"),
    get("status of a paused one", "/connectors/idle/status"),
    get("tasks", "/connectors/hb/tasks"),
    get("tasks of a stopped one", "/connectors/src/tasks"),
    get("status of a task", "/connectors/hb/tasks/0/status"),
    get("status of a task that is not there", "/connectors/hb/tasks/7/status"),
    send("restart a task", "POST", "/connectors/hb/tasks/0/restart", settled=Settled("hb", "RUNNING", 1)),
    send("restart a task that is not there", "POST", "/connectors/hb/tasks/7/restart"),
    send("restart", "POST", "/connectors/hb/restart", settled=Settled("hb", "RUNNING", 1)),
    send("restart with tasks", "POST", "/connectors/hb/restart?includeTasks=true", settled=Settled("hb", "RUNNING", 1)),
    # Nothing has failed; but the restarts before may not have ended, and their states are in the answer.
    send("restart what failed", "POST", "/connectors/hb/restart?includeTasks=TRUE&onlyFailed=true")._replace(
        changes_nothing=True
    ),
    send("restart if it failed", "POST", "/connectors/hb/restart?onlyFailed=true")._replace(changes_nothing=True),
    send("restart with a flag that is no boolean", "POST", "/connectors/hb/restart?includeTasks=maybe"),
    send("the wrong method for pause", "POST", "/connectors/hb/pause"),
    send("the wrong method for restart", "PUT", "/connectors/hb/restart"),
    get("topics", "/connectors/hb/topics", shape_only=True),
    send("reset topics", "PUT", "/connectors/hb/topics/reset"),
    get("offsets", "/connectors/hb/offsets", shape_only=True),
    send("change offsets while running", "PATCH", "/connectors/hb/offsets", {"offsets": [offset()]}),
    send("reset offsets while running", "DELETE", "/connectors/hb/offsets"),
    send("patch", "PATCH", "/connectors/hb/config", {"emit.heartbeats.interval.seconds": "2", "foo": None}),
    send("patch to a wrong number", "PATCH", "/connectors/hb/config", {"tasks.max": "none"}),
    bad("patch the class away", "PATCH", "/connectors/hb/config", '{"connector.class":null}'),
    send("patch the name away", "PATCH", "/connectors/hb/config", {"name": None}),
    send("patch nothing", "PATCH", "/connectors/hb/config", {}),
    bad("patch: malformed", "PATCH", "/connectors/hb/config", '{"a":'),
    bad("patch: null", "PATCH", "/connectors/hb/config", "null"),
    send("put the first config again", "PUT", "/connectors/hb/config", heartbeat(), Settled("hb", "RUNNING", 1)),
    send("put a new one", "PUT", "/connectors/hb2/config", heartbeat(name="hb2"), Settled("hb2", "RUNNING", 1)),
    send("put it again", "PUT", "/connectors/hb2/config", heartbeat(), Settled("hb2", "RUNNING", 1)),
    send("pause", "PUT", "/connectors/hb2/pause", settled=Settled("hb2", "PAUSED", 1)),
    send("pause again", "PUT", "/connectors/hb2/pause"),
    send("resume", "PUT", "/connectors/hb2/resume", settled=Settled("hb2", "RUNNING", 1)),
    send("stop", "PUT", "/connectors/hb2/stop", settled=Settled("hb2", "STOPPED")),
    send("stop again", "PUT", "/connectors/hb2/stop"),
    get("tasks once stopped", "/connectors/hb2/tasks"),
    send("delete", "DELETE", "/connectors/hb2", settled=Settled("hb2", "GONE")),
    get("deleted: info", "/connectors/hb2"),
    get("deleted: status", "/connectors/hb2/status"),
    send("delete again", "DELETE", "/connectors/hb2"),
]

OFFSETS = [
    get("offsets: none yet", "/connectors/src/offsets"),
    send("offsets: change", "PATCH", "/connectors/src/offsets", {"offsets": [offset(), offset(partition=1)]}),
    get("offsets: changed", "/connectors/src/offsets"),
    send("offsets: twice the same", "PATCH", "/connectors/src/offsets", {"offsets": [offset(), offset(position=6)]}),
    send(
        "offsets: remove one",
        "PATCH",
        "/connectors/src/offsets",
        {"offsets": [{"partition": offset()["partition"], "offset": None}]},
    ),
    get("offsets: one removed", "/connectors/src/offsets"),
    send("offsets: none given", "PATCH", "/connectors/src/offsets", {"offsets": []}),
    send("offsets: no list given", "PATCH", "/connectors/src/offsets", {}),
    send("offsets: a negative partition", "PATCH", "/connectors/src/offsets", {"offsets": [offset(partition=-1)]}),
    send("offsets: a partition of text", "PATCH", "/connectors/src/offsets", {"offsets": [offset(partition="0")]}),
    send("offsets: a topic of numbers", "PATCH", "/connectors/src/offsets", {"offsets": [offset(topic=5)]}),
    send("offsets: a negative offset", "PATCH", "/connectors/src/offsets", {"offsets": [offset(position=-5)]}),
    send("offsets: an offset of text", "PATCH", "/connectors/src/offsets", {"offsets": [offset(position="five")]}),
    send(
        "offsets: no partition's number",
        "PATCH",
        "/connectors/src/offsets",
        {"offsets": [{"partition": {"cluster": "A", "topic": "t"}, "offset": {"offset": 5}}]},
    ),
    send(
        "offsets: no offset's number",
        "PATCH",
        "/connectors/src/offsets",
        {"offsets": [{"partition": offset()["partition"], "offset": {"position": 5}}]},
    ),
    send("offsets: no partition", "PATCH", "/connectors/src/offsets", {"offsets": [{"offset": {"offset": 5}}]}),
    bad("offsets: an object", "PATCH", "/connectors/src/offsets", '{"offsets":{"a":1}}'),
    bad("offsets: a list of text", "PATCH", "/connectors/src/offsets", '{"offsets":["a"]}'),
    bad("offsets: a list of nothing", "PATCH", "/connectors/src/offsets", '{"offsets":[null]}'),
    bad("offsets: an unknown member", "PATCH", "/connectors/src/offsets", '{"x":1}'),
    bad("offsets: empty", "PATCH", "/connectors/src/offsets", ""),
    send("offsets: reset", "DELETE", "/connectors/src/offsets"),
    get("offsets: all gone", "/connectors/src/offsets"),
]

PLUGINS = [
    get("plugins", "/connector-plugins"),
    get("plugin: keys by a short name", "/connector-plugins/MirrorSource/config"),
    get("plugin: keys by a longer one", "/connector-plugins/MirrorCheckpointConnector/config"),
    get("plugin: keys by the class", f"/connector-plugins/{MIRROR}.MirrorHeartbeatConnector/config"),
    get("plugin: of the latest version", "/connector-plugins/MirrorHeartbeat/config?version=latest"),
    get("plugin: of another version", "/connector-plugins/MirrorHeartbeat/config?version=9.9"),
    get("plugin: unknown", "/connector-plugins/Foo/config"),
    validate("validate: good", "MirrorSource", {**SOURCE, "name": "x"}),
    validate(
        "validate: lacks keys",
        "MirrorHeartbeat",
        {"connector.class": "MirrorHeartbeat", "tasks.max": "zero", "foo": "bar"},
    ),
    send(
        "validate: another class",
        "PUT",
        "/connector-plugins/MirrorHeartbeat/config/validate",
        {"connector.class": "MirrorSource"},
    ),
    bad("validate: unknown class", "PUT", "/connector-plugins/Foo/config/validate", '{"connector.class":"Foo"}'),
    bad("validate: no class", "PUT", "/connector-plugins/MirrorHeartbeat/config/validate", "{}"),
    bad("validate: empty", "PUT", "/connector-plugins/MirrorHeartbeat/config/validate", ""),
    bad("validate: malformed", "PUT", "/connector-plugins/MirrorHeartbeat/config/validate", "["),
    send("validate: the wrong method", "POST", "/connector-plugins/MirrorHeartbeat/config/validate", {}),
]

_NAMES = ("MirrorSource", "MirrorSourceConnector", f"{MIRROR}.MirrorSource", f"{MIRROR}.MirrorSourceConnector")
_OTHER_NAMES = ("Source", "Connector", "mirrorsource", "MirrorSource%20", "MirrorCheckpointConnector", "Foo")
_BODY_NAMES = (*_NAMES, "MirrorSourceConnectorConnector", "org.x.MirrorSource", " MirrorSource ", "Foo", "")


def _named(path: str, included: str) -> RestCall:
    """The class once in the path and once in the body; Java's 500 has words of its own."""
    note = f"names: '{path}' for '{included}'"
    call = validate(note, path, {"connector.class": included, "name": "x", "source.cluster.alias": "A"})
    is_found = included in (_NAMES[0], _NAMES[1], _NAMES[3])
    return call._replace(in_short=True, own_words=not is_found)


NAMES = [
    *(_named(path, included) for path in (*_NAMES, *_OTHER_NAMES) for included in _BODY_NAMES),
    *(
        get(f"names: keys of '{name}'", f"/connector-plugins/{name}/config")._replace(in_short=True)
        for name in (*_NAMES, *_OTHER_NAMES)
    ),
]


def _judged(note: str, kind: str, own_judgement: tuple[str, ...] = (), **settings: object) -> RestCall:
    """A config that lacks nothing but what the note says; `__` in a name stands for a dot."""
    config = {"connector.class": f"Mirror{kind}", "name": "x", "source.cluster.alias": "A"}
    more = {name.replace("__", "."): value for name, value in settings.items()}
    return validate(f"judged: {note}", f"Mirror{kind}", config | more, own_judgement)._replace(in_short=True)


_CLASS_KEYS = {
    "Source": ("replication.policy.class", "topic.filter.class", "config.property.filter.class"),
    "Checkpoint": ("replication.policy.class", "topic.filter.class", "group.filter.class"),
    "Heartbeat": ("replication.policy.class",),
}
_ALL_CLASS_KEYS = ("forwarding.admin.class", "key.converter", "value.converter", "header.converter")
_UNKNOWN = ("no.such", "", "  ", "NoSuch", "no such", "a.b$c")
# Heliograph runs no transforms, so it refuses the key and finds no class of theirs.
_T, _P = ("transforms",), ("predicates",)
# Read-committed is the default here (docs/decisions/0007), so a source's exactly-once fails for another reason.
_EOS = ("exactly.once.support",)
# Java shows this key of another connector without its definition and its value.
_SYNCS = ("emit.offset-syncs.enabled",)

JUDGED = [
    *(
        _judged(f"{key} '{name}' of {kind}", kind, **{key: name})
        for kind, class_keys in _CLASS_KEYS.items()
        for key in (*class_keys, *_ALL_CLASS_KEYS)
        for name in _UNKNOWN
    ),
    *(
        _judged(f"{key} by Kafka's class", kind, **{key: f" {MIRROR}.{name} "})
        for key, name, kind in (
            ("replication.policy.class", "IdentityReplicationPolicy", "Heartbeat"),
            ("topic.filter.class", "DefaultTopicFilter", "Source"),
            ("group.filter.class", "DefaultGroupFilter", "Checkpoint"),
            ("config.property.filter.class", "DefaultConfigPropertyFilter", "Source"),
        )
    ),
    _judged(
        "a class of another connector", "Heartbeat", topic__filter__class="no.such", group__filter__class="no.such"
    ),
    _judged(
        "two classes and a number", "Source", replication__policy__class="a.b", topic__filter__class="c", tasks__max="x"
    ),
    _judged("a Python class, which Java does not find", "Source", replication__policy__class="no.such:Policy")._replace(
        own_judgement=("replication.policy.class",)
    ),
    _judged("a Python class for an admin, which neither finds", "Source", forwarding__admin__class="no.such:Admin"),
    _judged(
        "no checkpoints, and a word that is no boolean",
        "Checkpoint",
        **{"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "x"},
    ),
    _judged(
        "no checkpoints, no syncs, and a word that is no boolean",
        "Checkpoint",
        _SYNCS,
        **{
            "emit.checkpoints.enabled": "false",
            "emit.offset-syncs.enabled": "false",
            "sync.group.offsets.enabled": "x",
        },
    ),
    _judged(
        "no syncs, and checkpoints by no boolean",
        "Checkpoint",
        _SYNCS,
        **{"emit.checkpoints.enabled": "x", "emit.offset-syncs.enabled": "false"},
    ),
    _judged(
        "no checkpoints, enabled by no boolean", "Checkpoint", enabled="x", **{"emit.checkpoints.enabled": "false"}
    ),
    _judged(
        "no checkpoints in a connector that is off",
        "Checkpoint",
        enabled="false",
        **{"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "x"},
    ),
    _judged(
        "no checkpoints and no name",
        "Checkpoint",
        **{"emit.checkpoints.enabled": "false", "name": "", "tasks.max": "0"},
    ),
    _judged(
        "no syncs, set up all the same",
        "Source",
        **{"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target", "tasks.max": "x"},
    ),
    _judged(
        "no syncs, two keys of theirs, one wrong",
        "Source",
        **{
            "emit.offset-syncs.enabled": "false",
            "offset-syncs.topic.location": "moon",
            "offset-syncs.topic.replication.factor": "1",
        },
    ),
    _judged("no syncs, nothing set up", "Source", **{"emit.offset-syncs.enabled": "false", "offset.lag.max": "1"}),
    _judged("exactly-once of a source", "Source", _EOS, exactly__once__support="required"),
    _judged(
        "exactly-once of a source, and a word that is no boolean",
        "Source",
        exactly__once__support="required",
        source__consumer__isolation__level="read_committed",
        sync__topic__acls__enabled="x",
    ),
    _judged(
        "exactly-once of a source that reads everything, and a class that is not there",
        "Source",
        _EOS,
        exactly__once__support="required",
        source__consumer__isolation__level="read_uncommitted",
        replication__policy__class="no.such",
    ),
    _judged(
        "exactly-once of heartbeats, and no number", "Heartbeat", exactly__once__support="required", tasks__max="x"
    ),
    _judged(
        "exactly-once of checkpoints that are off",
        "Checkpoint",
        **{"exactly.once.support": "required", "emit.checkpoints.enabled": "false"},
    ),
    _judged(
        "several words that are none of the choices",
        "Source",
        **{"config.action.reload": "x", "errors.tolerance": "x", "sasl.login.refresh.buffer.seconds": "-1"},
    ),
    _judged("a transform without type", "Source", _T, transforms="t"),
    _judged("a transform of an unknown type", "Heartbeat", _T, **{"transforms": "t", "transforms.t.type": "no.such"}),
    _judged("a transform with an empty type", "Checkpoint", _T, **{"transforms": "t", "transforms.t.type": ""}),
    _judged("a transform whose type is null", "Source", _T, **{"transforms": "t", "transforms.t.type": None}),
    _judged("two transforms and two predicates", "Source", (*_T, *_P), transforms=" t , u", predicates="p,q"),
    _judged("a transform twice", "Source", _T, transforms="t,t"),
    _judged("a transform that nobody names", "Source", **{"transforms.t.type": "no.such"}),
    _judged("a predicate of an unknown type", "Source", _P, **{"predicates": "p", "predicates.p.type": "no.such"}),
    _judged("no transforms", "Source", transforms="", predicates=""),
]

CREATED = [
    send(
        f"create: {key} that is not there",
        "POST",
        "/connectors",
        {"name": "x", "config": {"connector.class": f"Mirror{kind}", "source.cluster.alias": "A", key: "no.such"}},
    )
    for kind, key in (
        ("Source", "replication.policy.class"),
        ("Source", "topic.filter.class"),
        ("Source", "config.property.filter.class"),
        ("Checkpoint", "group.filter.class"),
        ("Heartbeat", "forwarding.admin.class"),
        ("Heartbeat", "header.converter"),
    )
] + [
    send(
        "put: a class that is not there",
        "PUT",
        "/connectors/x/config",
        {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A", "replication.policy.class": "no.such"},
    ),
    get("create: still none of these", "/connectors"),
]

LOGGERS = [
    RestCall("loggers", "GET", "/admin/loggers", any_names=True),
    get("logger: root", "/admin/loggers/root", shape_only=True),
    get("logger: unknown", "/admin/loggers/nope"),
    send("logger: set a new one", "PUT", "/admin/loggers/conformance.rest.child", {"level": "FATAL"}),
    send("logger: set its parent", "PUT", "/admin/loggers/conformance.rest", {"level": "debug"}),
    send("logger: set it to the same", "PUT", "/admin/loggers/conformance.rest", {"level": "DEBUG"}),
    get("logger: changed", "/admin/loggers/conformance.rest"),
    send("logger: unknown level", "PUT", "/admin/loggers/conformance.rest", {"level": "LOUD"}),
    send("logger: a level of numbers", "PUT", "/admin/loggers/conformance.rest", {"level": 5}),
    send("logger: no level", "PUT", "/admin/loggers/conformance.rest", {}),
    bad("logger: empty", "PUT", "/admin/loggers/conformance.rest", ""),
    bad("logger: a list", "PUT", "/admin/loggers/conformance.rest", '{"level":["a"]}'),
    send("logger: everywhere", "PUT", "/admin/loggers/conformance.rest?scope=cluster", {"level": "ERROR"}),
    send("logger: everywhere, unknown level", "PUT", "/admin/loggers/conformance?scope=cluster", {"level": "LOUD"}),
    send("logger: an unknown scope", "PUT", "/admin/loggers/conformance.other?scope=galaxy", {"level": "FATAL"}),
    send("loggers: delete", "DELETE", "/admin/loggers"),
]

CLEANING = [
    send("clean: hb", "DELETE", "/connectors/hb"),
    send("clean: src", "DELETE", "/connectors/src"),
    send("clean: idle", "DELETE", "/connectors/idle"),
    get("clean: no connectors", "/connectors"),
]

CALLS = [*NOBODY, *REFUSED, *CREATED, *RUNNING, *OFFSETS, *PLUGINS, *NAMES, *JUDGED, *LOGGERS, *CLEANING]
