"""Slots are those of registered executors: counted once they have settled, and followed later."""

from __future__ import annotations

import logging

import pytest

from heliograph.driver.spark.executor_watch import Executor, ExecutorWatch, expected_slots

ONE, TWO = Executor("0", "a:1", 2), Executor("1", "b:1", 2)


class Watch(ExecutorWatch):
    """A watch with the test's clock."""

    def __init__(self, **settings: str) -> None:
        self.now = 100.0
        super().__init__(lambda: self.now)
        known = {f"spark.{name.replace('_', '.')}": value for name, value in settings.items()}
        self.begin(known.get)

    def see(self, after_s: float, *executors: Executor) -> bool:
        self.now += after_s
        self.take(executors)
        return self._settled.is_set()


def test_slots_settle_when_no_further_executor_comes() -> None:
    watch = Watch()
    assert not watch.see(1)
    assert not watch.see(4, ONE)
    assert not watch.see(2, ONE, TWO)
    assert not watch.see(2.9, ONE, TWO)
    assert watch.see(0.2, ONE, TWO)
    assert watch.slots == 4


def test_slots_that_the_settings_promise_are_not_waited_for_any_longer() -> None:
    watch = Watch(cores_max="4")
    assert not watch.see(1, ONE)
    assert watch.see(0.1, ONE, TWO)


def test_a_cluster_without_executors_is_waited_for_briefly_and_named(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    assert not watch.see(29)
    with caplog.at_level(logging.INFO):
        assert watch.see(1.1)
        watch.see(1)
    assert [line[:35] for line in caplog.messages] == [
        "Spark has started no executor in 30",
        "Spark has 0 slots on 0 executors",
    ]
    assert watch.slots == 0


def test_executors_that_come_and_go_change_the_slots_and_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    with caplog.at_level(logging.INFO):
        watch.see(1, ONE)
        watch.see(3, ONE)
        watch.see(50, ONE, TWO)
        watch.see(50, TWO)
        watch.see(1, TWO)
    assert caplog.messages == [
        "Spark has 2 slots on 1 executor",
        "Spark has 4 slots on 2 executors",
        "Spark has 2 slots on 1 executor",
    ]


def test_a_decommissioned_executor_has_no_slots() -> None:
    watch = Watch()
    watch.see(1, ONE, TWO._replace(is_leaving=True))
    assert (watch.slots, watch.leaving) == (2, {"1"})


def test_dynamic_allocation_starts_with_few_and_grows_for_tasks() -> None:
    watch = Watch(dynamicAllocation_enabled="true", cores_max="100")
    assert watch.grows_for_tasks
    assert watch.see(3.1)
    assert watch.slots == 0


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({}, None),
        ({"cores.max": "4"}, 4),
        ({"cores.max": "5", "task.cpus": "2"}, 2),
        ({"executor.instances": "3"}, 3),
        ({"executor.instances": "3", "executor.cores": "4", "task.cpus": "2"}, 6),
        ({"executor.instances": "3", "master": "spark://m:7077"}, None),
        ({"executor.instances": "3", "executor.cores": "2", "master": "spark://m:7077"}, 6),
    ],
)
def test_the_slots_that_the_settings_promise(settings: dict[str, str], slots: int | None) -> None:
    assert expected_slots(lambda name, default: settings.get(name.removeprefix("spark."), default)) == slots
