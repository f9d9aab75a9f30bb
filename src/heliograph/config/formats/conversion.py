"""Reads any form of a configuration, and converts it into another one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config.effective.mirror_config import SOURCE_CONNECTOR_NAME
from heliograph.config.formats.connector_json import connector_files, read_connectors
from heliograph.config.formats.connector_parts import Parts, take_apart
from heliograph.config.formats.reading import Reading
from heliograph.config.formats.strimzi_reader import is_resource, read_resource
from heliograph.config.formats.strimzi_secrets import Secrets, SecretsFolder
from heliograph.config.formats.strimzi_writer import resource_text
from heliograph.config.keys.table import split_list
from heliograph.config.resolve.placeholders import Lookup, Resolver
from heliograph.config.resolve.redaction import has_literal_secret
from heliograph.config.syntax.properties import as_map, parse_leniently, parse_properties, properties_text
from heliograph.diagnostics import Severity, in_order, note, with_severity
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.model import Flow


_PROVIDER = re.compile(r"\$\{(env|file|dir):")
_PROVIDER_CLASSES = {
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "file": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "dir": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}
FORMS = ("properties", "connectors", "strimzi")


@dataclass(frozen=True)
class ConfigText:
    """A file's text, its name, and the folder of the secrets it may refer to.

    If no client logs in (`needs_secrets` is false) the values of its placeholders need not be there.
    """

    text: str = field(repr=False)
    name: str = ""
    secrets: SecretsFolder | None = None
    needs_secrets: bool = True


def read_entries(source: ConfigText, lookup: Lookup) -> tuple[Reading, Lookup]:
    """Return the file's entries and the lookup of its placeholders; raises ConfigError if it cannot be read at all."""
    if not is_resource(source.text, source.name):
        entries, problems = parse_leniently(source.text)
        return Reading(entries, problems), lookup
    secrets = Secrets(source.secrets, must_exist=source.needs_secrets, is_needed=source.needs_secrets)
    reading = read_resource(source.text, secrets)
    return reading, secrets.lookup(lookup)


@dataclass
class Converted:
    """Texts by file name, with warnings and notes about them.

    `secrets` are the keys that hold a secret itself, so the texts are not for everyone.
    """

    files: dict[str, str] = field(repr=False)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    secrets: tuple[str, ...] = ()


def read_form(files: Mapping[str, str], secrets: SecretsFolder | None = None) -> Reading:
    """Read the user's files: one properties or YAML file, or connectors' JSON with their worker's file."""
    names = list(files)
    if any(name.lower().endswith(".json") for name in names):
        reading = read_connectors(files)
    elif len(names) != 1:
        raise ConfigError("several files can only be converted where they are connectors' JSON.")
    elif is_resource(files[names[0]], names[0]):
        found = Secrets(secrets, must_exist=secrets is not None)
        reading = read_resource(files[names[0]], found)
        _note_secrets(reading, found)
    else:
        reading = Reading(parse_properties(files[names[0]]))
    if reading.problems:
        raise ConfigError(reading.problems)
    return reading


def convert(reading: Reading, lookup: Lookup, form: str, api_version: str) -> Converted:
    """Return what was read in another form."""
    found = in_order(reading.diagnostics)
    warnings, notes = ([str(each) for each in with_severity(found, kind)] for kind in (Severity.WARNING, Severity.NOTE))
    raw = _with_providers(as_map(reading.entries))
    secrets = tuple(name for name, value in raw.items() if has_literal_secret(name, value))
    notes += [
        f"{name}: it holds a secret in plain text, and so does what is written; put it into a file or a Secret."
        for name in secrets
    ]
    if form == "properties":
        notes += _offsets_notes(reading.connectors)
        notes += [f"{flow} is {why}; it is written as not enabled." for flow, why in reading.paused.items()]
        first = {name: raw[name] for name in ("clusters",) if name in raw}
        text = properties_text((first | raw).items(), _header([*warnings, *notes]))
        return Converted({"mm2.properties": text}, notes, warnings, secrets)
    parts = take_apart(raw, reading.paused, Resolver(lookup, raw))
    notes += _unsaid(parts)
    notes += _offsets_notes(
        {each.flow: reading.connectors.get(each.flow, SOURCE_CONNECTOR_NAME) for each in parts.flows}
    )
    if form == "connectors":
        return Converted(connector_files(parts, notes), notes, warnings, secrets)
    text = resource_text(parts, api_version, notes)
    comments = "".join(f"# {line}\n" for line in _header([*warnings, *notes]))
    return Converted({"mirror-maker-2.yaml": comments + text}, notes, warnings, secrets)


def _header(notes: list[str]) -> list[str]:
    return ["Written by `heliograph convert`.", *(" ".join(note.split()) for note in notes)]


def _with_providers(raw: dict[str, str]) -> dict[str, str]:
    """Declare the config providers that are used: Heliograph knows Kafka's own without a declaration, Java does not."""
    declared = split_list(raw.get("config.providers", ""))
    used = dict.fromkeys(name for value in raw.values() for name in _PROVIDER.findall(value))
    missing = [name for name in used if name not in declared]
    if not missing:
        return raw
    classes = {f"config.providers.{name}.class": _PROVIDER_CLASSES[name] for name in missing}
    return {**raw, "config.providers": ",".join((*declared, *missing)), **classes}


def _offsets_notes(connectors: Mapping[Flow, str]) -> list[str]:
    return [
        f"{flow}: source offsets are kept by the connector's name, here '{name}'; one of another name does not find"
        " them. Java then copies everything again; Heliograph compares the logs and resumes after what the target has,"
        " but not with exactly-once, nor if a partition has over 10 million records or comparing takes over a minute."
        for flow, name in connectors.items()
    ]


def _unsaid(parts: Parts) -> list[str]:
    reported = [f"{name}: it has no effect on a flow that is enabled; it is left out." for name in parts.left_out]
    return reported + [
        f"{pair} does not replicate; the heartbeats that a dedicated MM2 writes for it are left out."
        for pair in parts.idle_heartbeats
    ]


def _note_secrets(reading: Reading, secrets: Secrets) -> None:
    """Note the folder that the placeholders read."""
    uses = any(f"${{dir:{secrets.path}/" in entry.value for entry in reading.entries)
    if uses and secrets.folder is None:
        message = f"secrets are read from the folder '{secrets.path}'; give another with --secrets DIR."
        reading.diagnostics.append(note(message))
    for name in secrets.documents:
        message = (
            f"the Secret or ConfigMap '{name}' of the file is not copied; put its keys into {secrets.path}/{name}."
        )
        reading.diagnostics.append(note(message))
