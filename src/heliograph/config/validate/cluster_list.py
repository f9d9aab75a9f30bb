"""The clusters of a dedicated-mode file: those that `clusters` lists, and those that its flows name.

An alias that the list lacks is a problem. The examination then treats it as a cluster, so that the mistakes in its
flows are reported together with it. No other form of a configuration can lack the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.keys import client_keys
from heliograph.config.keys.table import split_list
from heliograph.config.resolve.overlays import flow_of
from heliograph.diagnostics import Diagnostic, Mention, Text, problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from heliograph.config.resolve.placeholders import Resolver


_NAME = keys.CLUSTERS.name
_SERVERS = f".{client_keys.BOOTSTRAP_SERVERS.name}"
_A_WORKER = "this is the file of a Connect worker; run it with 'heliograph worker FILE'."
_A_CONNECTOR = "this is a connector; give it to a worker, or make a file of it with 'heliograph convert'."


class ClusterList(NamedTuple):
    """The aliases in the order of the file; `assumed` are those of them that only flows name.

    Without any alias the file is of another form, or has nothing to examine.
    """

    aliases: tuple[str, ...]
    assumed: frozenset[str]
    problems: tuple[Diagnostic, ...]


def read_clusters(raw: Mapping[str, str], resolver: Resolver, reported: Collection[str] = ()) -> ClusterList:
    """Return the clusters of a file.

    `resolver` keeps what it cannot resolve; aliases in `reported` have a diagnostic already.
    """
    text = raw.get(_NAME, "").strip()
    if not text and (other_form := _other_form(raw)):
        return ClusterList((), frozenset(), (problem(other_form, _NAME),))
    listed = split_list(resolver.resolve(_NAME, text))
    if not text or any("${" in alias for alias in listed):  # a variable that is not set is reported by the resolver
        named = tuple(dict.fromkeys(_named_by_flows(raw, ())))
        return ClusterList(named, frozenset(), () if text else (_missing(named),))
    problems = list(_wrong_in_list(listed))
    clusters = tuple(dict.fromkeys(filter(None, listed)))
    problems += _unknown_aliases(raw, clusters, reported)
    assumed = frozenset(_named_by_flows(raw, clusters)) - set(clusters)
    return ClusterList((*clusters, *sorted(assumed)), assumed, tuple(problems))


def _missing(named: tuple[str, ...]) -> Diagnostic:
    example = ", ".join(named or ("A", "B"))
    return problem(f"the file does not list its clusters; add a line such as '{_NAME} = {example}'.", _NAME)


def _other_form(raw: Mapping[str, str]) -> str | None:
    if "config.storage.topic" in raw:
        return _A_WORKER
    return _A_CONNECTOR if any("connector.class" in text for entry in raw.items() for text in entry) else None


def _wrong_in_list(aliases: tuple[str, ...]) -> Iterator[Diagnostic]:
    twice = sorted({alias for alias in aliases if alias and aliases.count(alias) > 1})
    if twice:
        yield problem(f"{', '.join(twice)} is listed twice.", _NAME)
    if "" in aliases:
        yield problem("the list has an empty alias; look for two commas in a row.", _NAME)


def _unknown_aliases(
    raw: Mapping[str, str], clusters: tuple[str, ...], reported: Collection[str]
) -> Iterator[Diagnostic]:
    for name in raw:
        unknown = [alias for alias in _flow_aliases(name, raw, clusters) if alias not in clusters]
        if unknown and not set(unknown) <= set(reported):
            listed = f"', which lists {', '.join(clusters)}."
            yield problem(Text.of(f"{' and '.join(unknown)} is not in '", Mention(_NAME), listed), name)


def _named_by_flows(raw: Mapping[str, str], clusters: tuple[str, ...]) -> Iterator[str]:
    for name in raw:
        yield from _flow_aliases(name, raw, clusters)


def _flow_aliases(name: str, raw: Mapping[str, str], clusters: tuple[str, ...]) -> tuple[str, ...]:
    """Return the two aliases of a name such as `A->B.topics`.

    An alias may have dots, so the end of the second one is found by the aliases that are known.
    """
    if "->" not in name:
        return ()
    flow = flow_of(name, clusters)
    if flow is not None:
        return tuple(flow)
    source, _, rest = name.partition("->")
    known = (*clusters, *(each.removesuffix(_SERVERS) for each in raw if each.endswith(_SERVERS)))
    return source, next((alias for alias in known if rest.startswith(f"{alias}.")), rest.partition(".")[0])
