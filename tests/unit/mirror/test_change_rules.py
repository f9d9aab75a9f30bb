"""The action for each topic whose log has changed: rules by pattern, and one action for all others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config import keys
from heliograph.config.resolve.settings import Settings
from heliograph.config.syntax.java_regex import PatternLimitError
from heliograph.errors import ConfigError
from heliograph.mirror.policy.change_rules import ChangeRules
from heliograph.model import ChangeActions
from tests.support.diagnostics import texts

RECREATED = keys.ON_RECREATED.name
CHOICES = {"truncation": ("continue", "fail"), "recreated": ("fail", "restart")}


def recreated(value: str, topic: str) -> str:
    return ChangeRules.of(Settings({RECREATED: value})).actions(topic).recreated


def problems(value: str, key: str = RECREATED, **raw: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        ChangeRules.of(Settings({key: value}, raw=raw))
    return texts(caught.value.problems)


def test_without_settings_every_topic_has_the_defaults() -> None:
    assert ChangeRules.of(Settings({})).actions("t") == ChangeActions("continue", "fail", "recopy")


@pytest.mark.parametrize(
    ("key", "actions"),
    [
        (keys.ON_TRUNCATION, ("continue", "fail")),
        (keys.ON_RECREATED, ("fail", "restart")),
        (keys.ON_TARGET_DELETED, ("recopy", "continue", "fail")),
    ],
)
def test_an_action_alone_is_for_every_topic(key: keys.Key[tuple[str, ...]], actions: tuple[str, ...]) -> None:
    at = (keys.ON_TRUNCATION, keys.ON_RECREATED, keys.ON_TARGET_DELETED).index(key)
    for action in actions:
        rules = ChangeRules.of(Settings({key.name: f" {action} "}))
        assert {rules.actions(topic)[at] for topic in ("t", "staging.t", "=")} == {action}


@pytest.mark.parametrize(
    ("value", "topic", "action"),
    [
        (r"staging\..*=restart, fail", "staging.orders", "restart"),
        (r"staging\..*=restart, fail", "orders", "fail"),
        (r"staging\..*=restart", "orders", "fail"),  # the key's default
        ("a=fail, .*=restart", "a", "fail"),
        ("a=fail, .*=restart", "b", "restart"),
        (".*=restart, a=fail", "a", "restart"),  # the first that matches
        ("orders=restart", "orders-2", "fail"),  # the whole name
        ("orders=restart", "my-orders", "fail"),
        ("shop.orders=restart", "shop.orders", "restart"),
        ("shop.orders=restart", "shopXorders", "fail"),  # in a name a dot is a dot
        ("shop.order.=restart", "shop.orders", "fail"),
        ("shop.[o]rders=restart", "shopXorders", "restart"),
        ("(?i)Orders[0-9&&[^5]]+=restart", "ORDERS12", "restart"),  # as Java reads it
        ("(?i)Orders[0-9&&[^5]]+=restart", "ORDERS15", "fail"),
        ("a[=]b|c=restart", "c", "restart"),  # a '=' of the pattern
        (" a = restart ,, fail ", "a", "restart"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_decides(value: str, topic: str, action: str) -> None:
    assert recreated(value, topic) == action


def test_each_key_has_rules_of_its_own() -> None:
    rules = ChangeRules.of(
        Settings({keys.ON_TRUNCATION.name: "a=fail", RECREATED: "b=restart", keys.ON_TARGET_DELETED.name: "continue"})
    )
    assert rules.actions("a") == ChangeActions("fail", "fail", "continue")
    assert rules.actions("b") == ChangeActions("continue", "restart", "continue")


NAMES = st.text("ab.-", min_size=1, max_size=4)


@given(
    st.lists(
        st.tuples(NAMES, st.booleans(), st.sampled_from(["fail", "restart"])), max_size=5, unique_by=lambda r: r[0]
    ),
    st.sampled_from([None, "fail", "restart"]),
    NAMES,
)
def test_rules_are_what_a_search_in_their_order_finds(
    rules: list[tuple[str, bool, str]], otherwise: str | None, topic: str
) -> None:
    """Names are literal, and `(?:name).*` is a pattern of what begins as the regex says."""
    entries = [f"{name}={action}" if is_name else f"(?:{name}).*={action}" for name, is_name, action in rules]
    value = ",".join([*entries, *([otherwise] if otherwise else [])])
    if not value:
        return
    expected = otherwise or "fail"
    for name, is_name, action in rules:
        if topic == name if is_name else re.fullmatch(f"(?:{name}).*", topic):
            expected = action
            break
    assert recreated(value, topic) == expected


@pytest.mark.parametrize(
    ("value", "sentences"),
    [
        ("restrat", ["'restrat' is neither an action (fail, restart) nor a rule PATTERN=ACTION."]),
        ("", ["it is empty; remove it, or set an action."]),
        (" , ", ["it is empty; remove it, or set an action."]),
        ("recopy", ["'recopy' is neither an action (fail, restart) nor a rule PATTERN=ACTION."]),
        ("a=stop, fail", ["'a=stop': the action must be one of fail, restart."]),
        ("a=, fail", ["'a=': the action must be one of fail, restart."]),
        ("=fail", ["'=fail' has no pattern; a rule is written PATTERN=ACTION."]),
        ("fail, a=restart", ["'fail' is for all topics that no rule matches; move it to the end."]),
        (
            "a=fail, fail, restart",
            ["'fail' and 'restart' are each for all topics that no rule matches; keep one, at the end."],
        ),
        (
            "a=fail, b=restart, a=restart",
            ["'a=fail' and 'a=restart' have the same pattern, and only the first applies; remove one."],
        ),
        ("(a=restart", ["'(a=restart': a pattern cannot be read as a Java regular expression: at character 1, a '('"]),
        (
            "[a=restart, *=fail, fail",
            ["'[a=restart': a pattern cannot be read as", "'*=fail': a pattern cannot be read as"],
        ),
        (
            "a{1,3}=fail",
            [
                "'a{1' is neither an action (fail, restart) nor a rule PATTERN=ACTION. A comma separates rules;",
            ],
        ),
        ("a=stop, b=go", ["'a=stop': the action", "'b=go': the action"]),
        (",".join(f"t{n}=fail" for n in range(1_001)), ["it has 1001 rules, but the limit is 1000; use patterns."]),
    ],
)
def test_a_mistake_is_one_sentence_with_the_name_of_the_key(value: str, sentences: list[str]) -> None:
    found = problems(value)
    assert len(found) == len(sentences), found
    for problem, sentence in zip(found, sentences, strict=True):
        assert problem.startswith(f"{RECREATED}: {sentence}"), problem


@pytest.mark.parametrize("value", ["(canary=restart", "canary=go", "canary"])
def test_the_value_of_a_placeholder_is_not_repeated(value: str) -> None:
    (found,) = problems(value, **{RECREATED: "${env:RULES}"})
    assert found.startswith(f"{RECREATED}: '${{env:RULES}}'")
    assert "canary" not in found


def test_a_pattern_that_would_take_too_long_is_refused_with_its_key() -> None:
    with pytest.raises(PatternLimitError, match=r"^heliograph\.on\.recreated: '\(\?=a\).*' takes too long"):
        recreated("(?=a)(?:a|aa)+$x=restart", "a" * 249)
    assert recreated("(a+)+b=restart", "a" * 10_000) == "fail"
