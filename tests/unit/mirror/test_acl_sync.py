"""Which ACLs reach the target, and in which shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.resolve.settings import Settings
from heliograph.mirror.topics.topic_acls import AclPlan, plan_acls, why_not
from heliograph.mirror.topics.topic_rules import TopicRules
from heliograph.model import AclBinding


def rules(**values: str) -> TopicRules:
    base = {"source.cluster.alias": "A", "target.cluster.alias": "B"}
    return TopicRules.of(Settings(base | {key.replace("_", "."): value for key, value in values.items()}))


def acl(permission: str, operation: str, topic: str = "topic1", pattern: str = "LITERAL") -> AclBinding:
    return AclBinding(topic, "User:kafka", "*", operation, permission, pattern)


def test_acl_filtering() -> None:
    """MirrorSourceConnectorTest.testAclFiltering"""
    assert why_not(rules(), acl("ALLOW", "WRITE")) == "only the replication writes to remote topics"
    assert why_not(rules(), acl("ALLOW", "ALL")) is None
    assert why_not(rules(), acl("DENY", "WRITE")) is None


def test_acl_transformation() -> None:
    """MirrorSourceConnectorTest.testAclTransformation"""
    plan = plan_acls(rules(), [acl("ALLOW", "ALL"), acl("DENY", "ALL"), acl("ALLOW", "DESCRIBE")], [])
    assert plan.adds == (
        acl("ALLOW", "READ", "A.topic1"),
        acl("DENY", "ALL", "A.topic1"),
        acl("ALLOW", "DESCRIBE", "A.topic1"),
    )


def test_only_what_is_missing_is_added() -> None:
    source = [acl("ALLOW", "ALL"), acl("ALLOW", "READ"), acl("DENY", "READ")]
    assert plan_acls(rules(), source, [acl("ALLOW", "READ", "A.topic1")]).adds == (acl("DENY", "READ", "A.topic1"),)


@pytest.mark.parametrize(
    ("left_out", "reason"),
    [
        (acl("ALLOW", "READ", pattern="PREFIXED"), "its pattern is PREFIXED, and only LITERAL ones are synced"),
        (acl("ALLOW", "READ", "*"), "it is for every topic, and A.* would be for none"),
        (acl("DENY", "READ", "B.t"), "its topic is not replicated: it came from 'B'"),
        (acl("ALLOW", "READ", "__consumer_offsets"), "its topic is not replicated: it is an internal topic"),
    ],
)
def test_what_is_left_out_has_a_reason(left_out: AclBinding, reason: str) -> None:
    plan = plan_acls(rules(), [left_out], [])
    assert plan.adds == ()
    assert plan.skipped[0].acl == left_out
    assert plan.skipped[0].reason.startswith(reason)


def test_names_that_stay_let_every_topic_stay_every_topic() -> None:
    same = rules(replication_policy_class="org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
    assert plan_acls(same, [acl("ALLOW", "ALL", "*")], []) == AclPlan((acl("ALLOW", "READ", "*"),))


ACLS = st.lists(
    st.builds(
        AclBinding,
        st.sampled_from(["t", "B.t", "A.t", "*", "__x"]),
        st.sampled_from(["User:a", "User:b"]),
        st.just("*"),
        st.sampled_from(["ALL", "READ", "WRITE", "DESCRIBE"]),
        st.sampled_from(["ALLOW", "DENY"]),
        st.sampled_from(["LITERAL", "PREFIXED"]),
    )
)


@given(ACLS, ACLS)
def test_a_plan_that_was_applied_leaves_nothing_to_plan(source: list[AclBinding], target: list[AclBinding]) -> None:
    plan = plan_acls(rules(), source, target)
    assert len(set(plan.adds)) == len(plan.adds)
    for added in plan.adds:
        assert added not in target
        assert added.topic == "A.t"
        assert (added.permission, added.operation) not in {("ALLOW", "WRITE"), ("ALLOW", "ALL")}
    assert plan_acls(rules(), source, [*target, *plan.adds]).adds == ()
