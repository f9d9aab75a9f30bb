"""Plans how many tasks a flow has and which partitions move, by its load and by the tasks' states; logs why.

A change is planned only when the last one was carried out: no partition is being released, and no task is leaving. A
new task begins without partitions, and gets some once it runs. Slots may be lost with their executors: a task that
waits for one is idle, and others copy its partitions until it runs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from heliograph.driver.flow.tasks.flow_task import TaskPhase
from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from heliograph.driver.flow.tasks.flow_balance import FlowBalance
    from heliograph.driver.flow.tasks.flow_task import FlowTasks
    from heliograph.driver.flow.tasks.task_plan import TaskPlan
    from heliograph.mirror.topics.task_scaling import TaskChange, TaskLimits
    from heliograph.model import TopicPartition


log = logging.getLogger(__name__)

RELEASE_TIMEOUT_S = 30.0  # of a partition that moves: after that it stays with its task


class Rebalancing:
    """Changes the plan of one flow's tasks; `scaled` is why the number of tasks has changed last."""

    def __init__(self, label: str, balance: FlowBalance, tasks: FlowTasks, plan: TaskPlan) -> None:
        self.scaled: str | None = None
        self.balance = balance
        self._label = label
        self._tasks = tasks
        self._plan = plan

    def look(self, now: float, limits: TaskLimits) -> bool:
        """Measure, and change the plan if that is due; return whether it has changed. Called every few seconds."""
        tasks, plan = self._tasks, self._plan
        self.balance.measure(now)
        if not tasks.are_settled:
            return False
        idle = tasks.without_slot(are_slots_few=limits.most < plan.count)
        change = self.balance.change(now, plan.count, limits)
        able = [task for task in tasks if task.number not in idle]
        is_running = bool(able) and all(task.phase is TaskPhase.RUNNING and not task.is_silent for task in able)
        may_grow = is_running and not idle
        if change is not None and len(tasks) == plan.count and (may_grow or change.tasks < plan.count):
            self._resize(change)
            if plan.count > len(tasks):
                return True
        fixed = plan.fixed(now)
        must_leave = len(tasks) > plan.count and not fixed
        if must_leave or (is_running and (plan.has_empty(idle) or self.balance.is_measured)):
            return self.move(self.balance.shares(plan.shares, plan.count, fixed, idle))
        return self.hand_over(now, idle, "wait for a Spark slot")

    def hand_over(self, now: float, idle: Collection[int], why: str) -> bool:
        """Plan the partitions of idle tasks for those that run; return whether there are any of both."""
        plan = self._plan
        partitions = sum(len(plan.share(number)) for number in idle)
        able = [task for task in self._tasks if task.number not in idle and task.phase is TaskPhase.RUNNING]
        if not partitions or not able or any(task.is_silent for task in able):
            return False
        numbers = ", ".join(map(str, sorted(idle)))
        text = "%s: these tasks %s, and others copy their partitions: %s"
        log.info(text, self._label, why, numbers, extra=self._about())
        return self.move(self.balance.shares(plan.shares, plan.count, plan.fixed(now), idle))

    def move(self, shares: Sequence[frozenset[TopicPartition]]) -> bool:
        """Plan other shares of the same partitions; return whether any has another task then."""
        moving = self._plan.move(shares)
        if not moving:
            return False
        log.info("%s: moving %s to another task", self._label, counted(moving, "partition"), extra=self._about())
        self.balance.changed()
        return True

    def keep_stuck(self, now: float) -> bool:
        """Leave partitions that could not be released in time with their tasks; return whether there are any."""
        has_stuck = False
        for task in self._tasks:
            overdue = [tp for tp, each in task.departed.items() if each.deadline <= now]
            stuck = [tp for tp in overdue if self._plan.task_of(tp) not in (None, task.number)]
            if stuck:
                has_stuck = True
                self._plan.stay(stuck, task.number, now)
                what = f"{stuck[0]} and {len(stuck) - 1} more" if len(stuck) > 1 else f"{stuck[0]}"
                text = "%s: task %d could not release %s within %.0f s, and continues with it"
                about = {**self._about(), "task": task.number}
                log.warning(text, self._label, task.number, what, RELEASE_TIMEOUT_S, extra=about)
        return has_stuck

    def _resize(self, change: TaskChange) -> None:
        self.scaled = f"{counted(change.tasks, 'task')} instead of {self._plan.count}: {change.reason}"
        log.info("%s: %s", self._label, self.scaled, extra=self._about())
        self._plan.count = change.tasks
        self.balance.changed()

    def _about(self) -> dict[str, object]:
        return {"flow": self._label}
