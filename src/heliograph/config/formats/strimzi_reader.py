"""Reads `KafkaMirrorMaker2` resources (Strimzi, IBM Event Streams) as the dedicated-mode file that does the same.

`A->B.x` comes from a mirror's connectors, `A.x` from a cluster; the target's config is its worker's, as in Connect.
What a resource does not request is switched off: no connector of a kind, no checkpoints or heartbeats. All resources of
a file are read together, as if they were one; `Secret` documents among them are used.

Keys and values are not checked here: `validate/dedicated_file` does that for all forms of a configuration.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from heliograph.config.formats.connector_parts import EMIT_CHECKPOINTS, EMIT_HEARTBEATS, FlowKeys
from heliograph.config.formats.reading import Reading
from heliograph.config.formats.strimzi_auth import StrimziAuthentication
from heliograph.config.formats.strimzi_fields import (
    API_VERSIONS,
    CLUSTER,
    CONNECTOR,
    CONNECTOR_IGNORED,
    CONNECTORS,
    DOCUMENT,
    KIND,
    MIRROR,
    PATTERNS,
    SPEC,
    SPEC_IGNORED,
    TARGET,
    check_fields,
    config_of,
    is_forbidden,
)
from heliograph.config.keys import RESTART_ATTEMPTS_MAX
from heliograph.config.keys.table import Scope
from heliograph.config.syntax.yaml_tree import Tree, parse_leniently
from heliograph.diagnostics import problem
from heliograph.model import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.config.formats.strimzi_secrets import Secrets


_SCOPES = dict(zip(CONNECTORS, (Scope.SOURCE, Scope.CHECKPOINT, Scope.HEARTBEAT), strict=True))
_OWNERS = {scope: f"{name}.config" for name, scope in _SCOPES.items()}
_EMITS = {"checkpointConnector": EMIT_CHECKPOINTS, "heartbeatConnector": EMIT_HEARTBEATS}
# Names that the operator uses by default: source offsets are found again there.
_OPERATORS_NAMES = {"group.id": "mirrormaker2-cluster", "offset.storage.topic": "mirrormaker2-cluster-offsets"}
_TARGET_FIELDS = {
    "groupId": "group.id",
    "configStorageTopic": "config.storage.topic",
    "offsetStorageTopic": "offset.storage.topic",
    "statusStorageTopic": "status.storage.topic",
}
_MARKS = re.compile(r"^(?:apiVersion|kind):\s*\S|^---[ \t\r]*+$|^[ \t]*+-[ \t]++[A-Za-z]++:", re.MULTILINE)


class StrimziMirror:
    """Reads one mirror: the keys of a flow."""

    def __init__(self, reading: Reading, secrets: Secrets, flow: Flow, tree: Tree) -> None:
        self._reading = reading
        self._secrets = secrets
        self._flow = flow
        self._tree = tree
        self._keys = FlowKeys(reading, flow)

    def read(self) -> None:
        """The patterns, then connector by connector; what the first says counts."""
        if self._flow in self._reading.connectors:
            self._reading.problem(self._tree, f"{self._flow} is mirrored twice; remove one of the mirrors.")
            return
        self._reading.connectors[self._flow] = f"{self._flow}.MirrorSourceConnector"
        self._read_patterns()
        for name in CONNECTORS:
            # `checkpointConnector:` with nothing after it is none, as for the operator.
            connector = self._tree.get(name)
            if connector is not None:
                self._read_connector(name, connector)
            elif name in _EMITS:
                self._keys.add_own(_EMITS[name], "false", self._tree)
        source = self._tree.get("sourceConnector")
        if source is None and self._tree.get("checkpointConnector") is not None:
            words = f"there is no sourceConnector, so {self._flow} copies nothing and has no checkpoints."
            self._reading.warn(self._tree, words)
        is_on = source is not None and self._flow not in self._reading.paused
        self._keys.add_own("enabled", "true" if is_on else "false", source or self._tree)

    def _read_patterns(self) -> None:
        for name, key in PATTERNS.items():
            pattern = self._tree.get(name)
            if pattern is None:
                continue
            newer = name.replace("Blacklist", "Exclude")
            if newer != name:
                self._reading.warn(pattern, f"this name is gone from newer versions; use {newer}.")
            if newer == name or self._tree.get(newer) is None:
                self._add(key, pattern)

    def _read_connector(self, kind: str, connector: Tree) -> None:
        if connector.kind != "map":
            self._reading.problem(connector, "it must be a map: config, tasksMax and more; or {} for the defaults.")
            return
        check_fields(self._reading, connector, CONNECTOR, CONNECTOR_IGNORED)
        config = config_of(self._reading, connector)
        if (tasks := connector.get("tasksMax")) is not None:
            if kind == "sourceConnector":
                self._add("tasks.max", tasks)
            elif tasks.text != "1":
                self._reading.note(tasks, "ignored: checkpoints and heartbeats need one task each.")
        self._read_restarts(kind, connector)
        is_stopped = self._read_state(kind, connector)
        if kind in _EMITS and (is_stopped or _EMITS[kind] not in config):
            self._keys.add_own(_EMITS[kind], "false" if is_stopped else "true", connector)
        for name, field in config.items():
            if not (is_stopped and name == _EMITS.get(kind)):
                self._read_key(kind, name, field)

    def _read_restarts(self, kind: str, connector: Tree) -> None:
        restart = connector.get("autoRestart")
        if restart is None:
            return
        check_fields(self._reading, restart, ("enabled", "maxRestarts"))
        enabled, limit = restart.get("enabled"), restart.get("maxRestarts")
        is_off = enabled is not None and enabled.text == "false"
        if not is_off and limit is None:
            return
        if kind == "sourceConnector":
            self._keys.add_own(RESTART_ATTEMPTS_MAX.name, "0" if is_off or limit is None else limit.text, restart)
        else:
            self._reading.note(restart, "ignored: checkpoints and heartbeats are always tried again.")

    def _read_state(self, kind: str, connector: Tree) -> bool:
        """Return whether the connector is paused or stopped, and note it."""
        pause, state = connector.get("pause"), connector.get("state")
        if state is not None and state.text not in ("running", "paused", "stopped"):
            self._reading.problem(state, f"'{state.text}' is none of running, paused, stopped.")
            return False
        by = state or pause
        if by is None or by.text in ("running", "false"):
            return False
        word = "stopped" if by.text == "stopped" else "paused"
        if kind == "sourceConnector":
            self._reading.paused[self._flow] = f"{word} by line {by.line}: {by.path}"
            self._reading.note(by, f"{self._flow} is {word}; it is not run.")
        else:
            what = "checkpoints" if kind == "checkpointConnector" else "heartbeats"
            self._reading.note(by, f"the {what} of {self._flow} are {word}; none are written.")
        return True

    def _read_key(self, kind: str, name: str, field: Tree) -> None:
        if name in ("name", "connector.class"):
            self._reading.note(field, "ignored: the operator names the connectors, and so does Heliograph.")
        elif name == "tasks.max":
            self._reading.warn(field, "the operator ignores this key here; it is read as tasksMax.")
            if kind == "sourceConnector":
                self._add(name, field)
        else:
            self._keys.add_of(_SCOPES[kind], name, self._secrets.rewritten(field.text), field, _OWNERS)

    def _add(self, key: str, field: Tree) -> None:
        self._keys.add(key, self._secrets.rewritten(field.text), field)


def is_resource(text: str, name: str = "") -> bool:
    """Return whether a file is YAML and not properties: by its name, or by lines that no properties file has."""
    return name.lower().endswith((".yml", ".yaml")) or _MARKS.search(text) is not None


def read_resource(text: str, secrets: Secrets) -> Reading:
    """Every resource of the text, as one dedicated-mode file."""
    trees, problems = parse_leniently(text)
    reading = Reading(diagnostics=problems, is_resource=True)
    resources: list[Tree] = []
    for document in _documents(trees):
        kind = document.get("kind")
        if kind is not None and kind.text in ("Secret", "ConfigMap"):
            secrets.add_document(reading, document)
        elif (spec := _spec(reading, document)) is not None:
            resources.append(spec)
    if not resources and not reading.problems:
        reading.diagnostics.append(problem(f"there is no {KIND} in the file."))
    reader = _ResourceReader(reading, secrets)
    for spec in resources:
        reader.read(spec)
    reader.finish()
    return reading


def _documents(trees: list[Tree]) -> Iterator[Tree]:
    for tree in trees:
        kind, items = tree.get("kind"), tree.get("items")
        if kind is not None and kind.text.endswith("List") and items is not None:
            yield from items.items
        elif tree.kind != "nothing":
            yield tree


def _spec(reading: Reading, document: Tree) -> Tree | None:
    """Return the spec of a resource; None with a diagnostic if the document is of another kind."""
    if document.kind != "map":
        reading.problem(document, f"it is a {document.kind}, not a {KIND}: a map with apiVersion, kind and spec.")
        return None
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind is None and any(name in document.fields for name in SPEC):
        words = f"apiVersion and kind are missing; it is read as the spec of a {KIND}."
        reading.warn(document, words)
        return document
    if kind is None or kind.text != KIND:
        given = f"a {kind.text}" if kind is not None else "a document without kind"
        reading.note(kind or document, f"{given} is left alone; only {KIND} is read, and Secret and ConfigMap with it.")
        return None
    if version is None or version.text not in API_VERSIONS:
        given = f"'{version.text}' is not a known" if version is not None else "there is no"
        reading.problem(version or document, f"{given} apiVersion; known are {', '.join(API_VERSIONS)}.")
    check_fields(reading, document, DOCUMENT)
    spec = document.get("spec")
    if spec is None or spec.kind != "map":
        reading.problem(document, "it has no spec.")
        return None
    return spec


class _ResourceReader:
    """Reads specs, one after the other, into one file."""

    def __init__(self, reading: Reading, secrets: Secrets) -> None:
        self._reading = reading
        self._secrets = secrets
        self._clusters: dict[str, Tree] = {}
        self._first: Tree | None = None
        self._is_lack_reported = False  # that there are no clusters, or what is wrong with them

    def read(self, spec: Tree) -> None:
        """One resource."""
        self._first = self._first or spec
        check_fields(self._reading, spec, SPEC, SPEC_IGNORED)
        external = spec.get("externalConfiguration")
        if external is not None:
            self._secrets.add_external(external)
        target = spec.get("target")
        self._is_lack_reported |= spec.get("clusters") is not None or target is not None
        for cluster in (*_list(self._reading, spec, "clusters"), *([target] if target is not None else [])):
            self._read_cluster(cluster, TARGET if cluster is target else CLUSTER)
        connect = self._connect_cluster(spec, target)
        mirrors = _list(self._reading, spec, "mirrors")
        if not mirrors:
            self._reading.problem(spec.get("mirrors") or spec, "there are no mirrors; add at least one to 'mirrors'.")
        for mirror in mirrors:
            flow = self._flow(mirror, connect, target)
            if flow is not None:
                StrimziMirror(self._reading, self._secrets, flow, mirror).read()

    def finish(self) -> None:
        """Add what all resources have together."""
        if self._first is None:
            return
        if self._clusters:
            first = next(iter(self._clusters.values()))
            self._reading.add("clusters", ", ".join(self._clusters), first, f"{first.path} (clusters)")
        elif not self._is_lack_reported or not self._reading.problems:
            self._reading.problem(self._first, "it has no clusters.")
        place = f"{self._first.path or 'the document'} (emit.heartbeats.enabled)"
        self._reading.add("emit.heartbeats.enabled", "false", self._first, place)
        flows = self._reading.connectors
        is_any_on = any((entry := self._reading.entry(f"{flow}.enabled")) and entry.value == "true" for flow in flows)
        if flows and not is_any_on and not self._reading.paused:
            self._reading.problem(self._first, "no mirror copies anything; add 'sourceConnector: {}' to one.")
        targets = dict.fromkeys(flow.target for flow in flows)
        for alias in targets:
            for name, value in _OPERATORS_NAMES.items() if alias in self._clusters else ():
                if self._reading.entry(f"{alias}.{name}") is None:
                    tree = self._clusters[alias]
                    self._reading.add(f"{alias}.{name}", value, tree, f"{tree.path} ({name})")

    def _connect_cluster(self, spec: Tree, target: Tree | None) -> str | None:
        """The alias of the cluster that the operator's worker would belong to."""
        connect = spec.get("connectCluster")
        if target is not None:
            alias = target.get("alias")
            return alias.text if alias is not None else None
        if connect is None:
            self._reading.warn(spec, "connectCluster is missing; the operator asks for it, the alias of the target.")
            return None
        return self._known_or_assumed(connect)

    def _known_or_assumed(self, named: Tree) -> str:
        """Return an alias; one that no cluster has is a problem and assumed, so that the rest of the mirror is read."""
        if named.text not in self._clusters:
            self._reading.problem(named, f"no cluster has the alias '{named.text}'{self._known()}.")
            self._reading.assumed.add(named.text)
        return named.text

    def _unnamed(self, mirror: Tree, missing: str) -> str:
        """Return a name in place of a missing alias, for the same reason; no two mirrors have the same."""
        self._reading.problem(mirror, f"{missing} is missing.")
        alias = f"?{mirror.line}"
        self._reading.assumed.add(alias)
        return alias

    def _known(self) -> str:
        self._is_lack_reported |= not self._clusters
        return f"; there are {', '.join(self._clusters)}" if self._clusters else "; there are no clusters"

    def _read_cluster(self, tree: Tree, fields: tuple[str, ...]) -> None:
        if tree.kind != "map":
            self._reading.problem(tree, "it must be a cluster: alias, bootstrapServers and more.")
            return
        check_fields(self._reading, tree, fields)
        alias = tree.get("alias")
        if alias is None or not alias.text or "," in alias.text:
            words = "the cluster has no alias." if alias is None else "an alias is a word without commas."
            self._reading.problem(alias or tree, words)
            return
        self._clusters.setdefault(alias.text, tree)
        # The check that all forms share reports a cluster without servers; it only needs the place of the field.
        nowhere = Tree("nothing", f"{tree.path}.bootstrapServers", tree.line)
        servers = tree.fields.get("bootstrapServers", nowhere)
        self._reading.add(f"{alias.text}.bootstrap.servers", servers.text, servers)
        for field, name in _TARGET_FIELDS.items():
            given = tree.get(field) if field in fields else None
            if given is not None:
                self._reading.add(f"{alias.text}.{name}", given.text, given)
        login = StrimziAuthentication(self._reading, self._secrets)
        login.read(tree)
        config = config_of(self._reading, tree)
        self._declare_providers(config)
        for name, (text, origin) in login.keys.items():
            if name not in config:
                self._reading.add(f"{alias.text}.{name}", text, origin, f"{origin.path} ({name})")
        for name, value in config.items():
            self._read_cluster_key(alias.text, name, value)

    def _read_cluster_key(self, alias: str, name: str, field: Tree) -> None:
        if is_forbidden(name):
            self._reading.warn(field, "the operator ignores this key here; Heliograph obeys it.")
        if name.startswith("config.providers"):
            self._read_provider_key(name, field)
        else:
            self._reading.add(f"{alias}.{name}", self._secrets.rewritten(field.text), field)

    def _declare_providers(self, config: dict[str, Tree]) -> None:
        """Note the providers that ask Kubernetes before any value is read that may use them."""
        for name, field in config.items():
            if name.startswith("config.providers.") and name.endswith(".class"):
                self._secrets.add_provider(name.split(".")[2], field.text)

    def _read_provider_key(self, name: str, field: Tree) -> None:
        parts = name.split(".")
        if len(parts) > 2 and self._secrets.knows_provider(parts[2]):
            return
        names = [each.strip() for each in field.text.split(",")] if name == "config.providers" else []
        kept = ",".join(each for each in names if not self._secrets.knows_provider(each))
        if kept or not names:
            self._reading.add(name, kept or field.text, field)

    def _flow(self, mirror: Tree, connect: str | None, target: Tree | None) -> Flow | None:
        if mirror.kind != "map":
            self._reading.problem(
                mirror, "it must be a mirror: sourceCluster, targetCluster, sourceConnector and more."
            )
            return None
        check_fields(self._reading, mirror, MIRROR)
        source = self._source(mirror)
        into = mirror.get("targetCluster")
        if into is not None:
            alias = self._known_or_assumed(into)
        elif connect is None and target is None:
            alias = self._unnamed(mirror, "targetCluster")
        else:
            alias = connect or ""
        if into is not None and alias != connect and {alias, connect} <= set(self._clusters):
            words = (
                f"the mirror writes to '{alias}', and connectCluster (or target) is '{connect}'; it must be the same."
            )
            self._reading.problem(into, words)
        if source is None or not alias:
            return None
        if source == alias:
            self._reading.problem(mirror, f"'{alias}' is its source and its target; a cluster is not copied to itself.")
            return None
        return Flow(source, alias)

    def _source(self, mirror: Tree) -> str | None:
        own, named = mirror.get("source"), mirror.get("sourceCluster")
        if own is not None:
            self._read_cluster(own, CLUSTER)
            alias = own.get("alias")
            return alias.text if alias is not None else None
        return self._unnamed(mirror, "sourceCluster") if named is None else self._known_or_assumed(named)


def _list(reading: Reading, tree: Tree, name: str) -> tuple[Tree, ...]:
    found = tree.get(name)
    if found is not None and found.kind != "list":
        reading.problem(found, "it must be a list.")
        return ()
    return found.items if found is not None else ()
