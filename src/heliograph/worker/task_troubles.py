"""What troubles the tasks of a flow while they go on trying: told once it lasts, and once more when it is over.

A leader that moves or a broker that restarts is trouble for a moment, and nobody's business; one that stays away is.
Partitions come and go in the words of a lasting trouble, so what is shown of it changes only now and then: states are
written to a topic, and whoever watches them is not to be woken by every change of words.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger(__name__)

_LASTS_S = 5.0
_MOST_WORDS = 3


@dataclass(slots=True)
class _Trouble:
    words: str
    since: float
    shown: str | None = None
    shown_at: float = 0.0


class TaskTroubles:
    """The troubles of a flow's tasks, by the task's id."""

    def __init__(self) -> None:
        self._troubles: dict[str, _Trouble] = {}

    def note(self, task_id: str, words: Sequence[str]) -> bool:
        """What the task's newest report tells; nothing, where all is well. Whether a lasting trouble is over."""
        if not words:
            is_over = self.lasting(task_id) is not None
            if is_over:
                log.info("%s: it goes on as before.", task_id)
            self.forget(task_id)
            return is_over
        now = time.monotonic()
        trouble = self._troubles.setdefault(task_id, _Trouble("", now))
        trouble.words = brief(words)
        if now - max(trouble.since, trouble.shown_at) < _LASTS_S:
            return False
        if trouble.shown is None:
            log.warning("%s: %s (it goes on trying)", task_id, trouble.words.rstrip("."))
        trouble.shown, trouble.shown_at = trouble.words, now
        return False

    def forget(self, task_id: str) -> None:
        """The task has ended."""
        self._troubles.pop(task_id, None)

    def lasting(self, task_id: str) -> str | None:
        """What has troubled a task for a while."""
        trouble = self._troubles.get(task_id)
        return None if trouble is None else trouble.shown

    @property
    def words(self) -> list[str]:
        """All there is just now, lasting or not."""
        return [trouble.words for trouble in self._troubles.values()]


def brief(words: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = [f"and {len(words) - _MOST_WORDS} more"] if len(words) > _MOST_WORDS else []
    return "; ".join([*words[:_MOST_WORDS], *more])
