"""Which clusters a dedicated-mode file speaks of: those that `clusters` lists, and those that its flows name.

An alias that is missing in the list is a problem. Whoever looks for the next problems takes it for a cluster, or every
mistake in its flows would only be told once the list is right. No form of a file but this one can lack the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import client_keys, keys
from heliograph.config.names import flow_of
from heliograph.config.types import split_list

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from heliograph.config.placeholders import Resolver

_NAME = keys.CLUSTERS.name
_SERVERS = f".{client_keys.BOOTSTRAP_SERVERS.name}"
_A_WORKER = f"{_NAME}: this is the file of a Connect worker; run it with 'heliograph worker FILE'."
_A_CONNECTOR = f"{_NAME}: this is a connector; give it to a worker, or make a file of it with 'heliograph convert'."


class ClusterList(NamedTuple):
    """The aliases in the order of the file; `assumed` are those of them that only flows name. Problems are sentences.

    Without any alias the file is of another form, or says nothing that could be looked at.
    """

    aliases: tuple[str, ...]
    assumed: frozenset[str]
    problems: tuple[str, ...]


def read_clusters(raw: Mapping[str, str], resolver: Resolver, told: Collection[str] = ()) -> ClusterList:
    """The clusters of a file. `resolver` leaves what it cannot resolve; aliases in `told` have been told of."""
    text = raw.get(_NAME, "").strip()
    if not text and (other_form := _other_form(raw)):
        return ClusterList((), frozenset(), (other_form,))
    listed = split_list(resolver.resolve(_NAME, text))
    if not text or any("${" in alias for alias in listed):  # a variable that is not set is told by who resolves
        named = tuple(dict.fromkeys(_named_by_flows(raw, ())))
        return ClusterList(named, frozenset(), () if text else (_missing(named),))
    problems = list(_wrong_in_list(listed))
    clusters = tuple(dict.fromkeys(filter(None, listed)))
    problems += _unknown_aliases(raw, clusters, told)
    assumed = frozenset(_named_by_flows(raw, clusters)) - set(clusters)
    return ClusterList((*clusters, *sorted(assumed)), assumed, tuple(problems))


def _missing(named: tuple[str, ...]) -> str:
    example = ", ".join(named or ("A", "B"))
    return f"{_NAME}: the file does not list its clusters; add a line such as '{_NAME} = {example}'."


def _other_form(raw: Mapping[str, str]) -> str | None:
    if "config.storage.topic" in raw:
        return _A_WORKER
    return _A_CONNECTOR if any("connector.class" in text for entry in raw.items() for text in entry) else None


def _wrong_in_list(aliases: tuple[str, ...]) -> Iterator[str]:
    twice = sorted({alias for alias in aliases if alias and aliases.count(alias) > 1})
    if twice:
        yield f"{_NAME}: {', '.join(twice)} is listed twice."
    if "" in aliases:
        yield f"{_NAME}: the list has an empty alias; look for two commas in a row."


def _unknown_aliases(raw: Mapping[str, str], clusters: tuple[str, ...], told: Collection[str]) -> Iterator[str]:
    for name in raw:
        unknown = [alias for alias in _flow_aliases(name, raw, clusters) if alias not in clusters]
        if unknown and not set(unknown) <= set(told):
            yield f"{name}: {' and '.join(unknown)} is not in '{_NAME}', which lists {', '.join(clusters)}."


def _named_by_flows(raw: Mapping[str, str], clusters: tuple[str, ...]) -> Iterator[str]:
    for name in raw:
        yield from _flow_aliases(name, raw, clusters)


def _flow_aliases(name: str, raw: Mapping[str, str], clusters: tuple[str, ...]) -> tuple[str, ...]:
    """The two aliases of a name such as `A->B.topics`; an alias may have dots, so those that are known tell its end."""
    if "->" not in name:
        return ()
    flow = flow_of(name, clusters)
    if flow is not None:
        return tuple(flow)
    source, _, rest = name.partition("->")
    known = (*clusters, *(each.removesuffix(_SERVERS) for each in raw if each.endswith(_SERVERS)))
    return source, next((alias for alias in known if rest.startswith(f"{alias}.")), rest.partition(".")[0])
