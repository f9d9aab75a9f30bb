"""What a message calls a setting: its name in a properties file, its path in a resource; and the line it stands on.

All rules about a configuration speak of the names of a dedicated-mode file. Where the user wrote something else, their
sentences are put into the user's words here, in the last step before they are shown.


The nearest known name for a mistyped one, and what holds as long as the name is mistyped.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from heliograph.config.keys import client_keys
from heliograph.config.resolve.redaction import shown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.resolve.settings import Settings


_LINE = re.compile(r"line (\d+): ")
_NAME = re.compile(r"[^\s',;()]+(?:->[^\s',;()]+)?")


def located(sentence: str, lines: Mapping[str, int], paths: Mapping[str, str]) -> str:
    """The sentence with every name as the user wrote it, behind the line of the name it begins with, if it has one."""
    name, colon, rest = sentence.partition(": ")
    line = lines.get(name, 0)
    reported = _in_users_words(sentence, paths) if paths else f"{shown_name(name) if line else name}{colon}{rest}"
    return f"line {line}: {reported}" if line else reported


def in_order(sentences: Iterable[str]) -> tuple[str, ...]:
    """Sentences in the order of the file, those without a line first."""
    return tuple(sorted(sentences, key=lambda sentence: int(found[1]) if (found := _LINE.match(sentence)) else 0))


def shown(name: str, paths: Mapping[str, str]) -> str:
    """One name as the user wrote it."""
    return paths.get(name) or shown_name(name)


def connection_keys(client: Settings, paths: Mapping[str, str]) -> tuple[str, ...]:
    """What says where a client's cluster is and how it is spoken to, as the user wrote it or would write it.

    A resource has other fields for what it does not set; of these nothing is said.
    """
    names = (client.written_as(client_keys.BOOTSTRAP_SERVERS), client.written_as(client_keys.SECURITY_PROTOCOL))
    return tuple(shown(name, paths) for name in names if not paths or name in paths)


def _in_users_words(sentence: str, paths: Mapping[str, str]) -> str:
    prefixes = sorted({name[: -len(key)] for name, path in paths.items() if (key := _key(name, path))}, key=len)

    def word(found: re.Match[str]) -> str:
        text = found[0]
        bare = text.rstrip(".:")
        if bare in paths:
            return paths[bare] + text[len(bare) :]
        # A name that is not in the file is a suggestion: the part before the key is ours, not the user's.
        before = found.string[found.start() - 1 : found.start()]
        prefix = next((each for each in reversed(prefixes) if text.startswith(each)), "") if before == "'" else ""
        return text[len(prefix) :]

    return _NAME.sub(word, sentence)


def _key(name: str, path: str) -> str:
    """The end that a name and its path have in common, if the path ends in a Kafka key."""
    _, config, key = path.partition(".config.")
    return key if config and name.endswith(f".{key}") else ""


_LONGEST_NAME = 256
# A flow that was meant to be about some is about all: too much to leave it to the reader.
_EVERYTHING = {"topics": "'topics' stays '.*': every topic", "groups": "'groups' stays '.*': every group"}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that may be meant; a name longer than any that is known is not compared."""
    if len(name) > _LONGEST_NAME:
        return None
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.75)), None)


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """` Did you mean 'x'?` with the prefix put back, or an empty text where nothing is near."""
    near = nearest(name, known)
    return f" Did you mean '{prefix}{near}'?" if near else ""


def until_then(key: str | None) -> str:
    """What a key that is set nowhere means, in a sentence; empty for one whose default does no harm."""
    return f" Until then {_EVERYTHING[key]}." if key in _EVERYTHING else ""
