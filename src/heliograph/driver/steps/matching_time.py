"""Limits the time that a flow spends on matching names in one round.

A pattern has a limit for one name (`java_regex`), but a cluster may have many names, each just below it. The processor
time of the flow's own thread is measured, not elapsed time: the machine may be busy, and a filter class may wait.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.config.syntax.java_regex import PatternLimitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_MOST_S = 10.0


def within_matching_time(names: Iterable[str], keys: str, alias: str) -> Iterator[str]:
    """Yield the names one by one; raise PatternLimitError if the caller takes too long for all of them."""
    began = time.thread_time()
    for name in names:
        yield name
        if time.thread_time() - began > _MOST_S:
            raise PatternLimitError(
                f"{keys}: the patterns take more than {_MOST_S:.0f} s to match the names on '{alias}'; write them"
                " without repetitions inside of repetitions, or without look-around and back-references."
            )
