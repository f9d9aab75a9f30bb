"""The most time that a flow may spend on matching names in one round.

A pattern has a limit for one name (`java_regex`), but a cluster may have many names, each just below it. What counts is
the processor time of the flow's own thread, so that a busy machine, or a filter class that waits, is not mistaken.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.config.syntax.java_regex import PatternLimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_MOST_S = 10.0


def within_matching_time(names: Iterable[str], keys: str, alias: str) -> Iterator[str]:
    """The names one by one; raises PatternLimitError where what is done with them takes too long altogether."""
    began = time.thread_time()
    for name in names:
        yield name
        if time.thread_time() - began > _MOST_S:
            raise PatternLimitError(
                f"{keys}: the patterns take more than {_MOST_S:.0f} s to match the names on '{alias}'; write them"
                " without repetitions inside of repetitions, or without look-around and back-references."
            )
