"""The forms a user's configuration can have, as entries of a dedicated-mode file: properties, or a resource in YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config.properties import parse_leniently
from heliograph.config.reading import Reading, Told
from heliograph.config.strimzi import is_resource, read_resource
from heliograph.config.strimzi_secrets import Secrets

if TYPE_CHECKING:
    from heliograph.config.placeholders import Lookup
    from heliograph.config.strimzi_secrets import SecretsFolder


@dataclass(frozen=True)
class ConfigText:
    """A file's text, its name, and the folder of the secrets it may refer to.

    Where nobody logs in (`needs_secrets` is false) what its placeholders stand for need not be there.
    """

    text: str = field(repr=False)
    name: str = ""
    secrets: SecretsFolder | None = None
    needs_secrets: bool = True


def read_entries(source: ConfigText, lookup: Lookup) -> tuple[Reading, Lookup]:
    """What the file says, and where its placeholders are looked up; a ConfigError where it cannot be read at all."""
    if not is_resource(source.text, source.name):
        entries, problems = parse_leniently(source.text)
        return Reading(entries, [Told(*problem) for problem in problems]), lookup
    secrets = Secrets(source.secrets, must_exist=source.needs_secrets, is_needed=source.needs_secrets)
    reading = read_resource(source.text, secrets)
    return reading, secrets.lookup(lookup)
