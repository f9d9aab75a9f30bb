"""Gather, plan, apply for topic ACLs: what the source grants on a topic, the target grants on its copy.

Only what is missing is added, nothing is ever deleted. A cluster without an authorizer is no error: it is told once,
and looked at again in the next round.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from heliograph.driver.flow.topic_sync import TOPIC_KEYS
from heliograph.driver.steps.issues import LogOnce, by_reason
from heliograph.driver.steps.matching_time import within_matching_time
from heliograph.errors import BrokerError
from heliograph.kafka.admin.acl_admin import add_acls, topic_acls
from heliograph.kafka.error_codes import CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED
from heliograph.mirror.topics.topic_acls import EVERY_TOPIC, AclPlan, plan_acls, remote_acls

if TYPE_CHECKING:
    from heliograph.kafka.admin.admin import Admin
    from heliograph.mirror.topics.topic_rules import TopicRules
    from heliograph.model import AclBinding


log = logging.getLogger(__name__)


class GatheredAcls(NamedTuple):
    """A plan, and what is worth a word."""

    plan: AclPlan
    notes: tuple[str, ...]


class AclSync:
    """Keeps the ACLs of a flow's remote topics in step with the source's."""

    def __init__(self, rules: TopicRules, source: Admin, target: Admin) -> None:
        self._rules = rules
        self._source = source
        self._target = target
        self._reported = LogOnce(log)

    def sync(self) -> tuple[str, ...]:
        """One round; returns the troubles it met."""
        plan, notes = self.plan()
        for note in notes:
            self._reported.report(logging.INFO, note)
        refused = add_acls(self._target, plan.adds)
        for acl in plan.adds:
            if acl not in refused:
                log.info("%s: added the ACL %s", self._target.alias, acl)
        reasons = {str(acl): refusal for acl, refusal in refused.items()}
        return by_reason(f"The ACLs {{names}} cannot be added on '{self._target.alias}'", reasons)

    def plan(self) -> GatheredAcls:
        """What the target lacks; changes nothing. Where nothing is wanted, the target is not even asked."""
        source = _acls_of(self._source)
        if source is None:
            return GatheredAcls(AclPlan(), (_without_authorizer(self._source),))
        listed = within_matching_time(self._source.view().partition_counts, TOPIC_KEYS, self._source.alias)
        copied = [topic for topic in listed if self._rules.replicates(topic)]
        clashing = self._rules.clashes(copied)  # not copied: rights on them must not open another topic's copy
        source = tuple(acl for acl in source if acl.topic not in clashing)
        wanted, left_out = remote_acls(self._rules, source)
        notes = [f"The ACL {each.acl} is skipped: {each.reason}" for each in left_out if each.acl.topic == EVERY_TOPIC]
        if not wanted:
            return GatheredAcls(AclPlan(skipped=left_out), tuple(notes))
        target = _acls_of(self._target, "ALTER on the cluster, which includes DESCRIBE")
        if target is None:
            return GatheredAcls(AclPlan(skipped=left_out), (*notes, _without_authorizer(self._target)))
        return GatheredAcls(plan_acls(self._rules, source, target), tuple(notes))


def _acls_of(admin: Admin, needs: str = "DESCRIBE on the cluster") -> tuple[AclBinding, ...] | None:
    """The cluster's topic ACLs; None where it has no authorizer."""
    try:
        return topic_acls(admin, needs)
    except BrokerError as error:
        if error.code == CLUSTER_AUTHORIZATION_FAILED:
            words = str(error).rstrip(".")
            raise BrokerError(f"{words}; or set sync.topic.acls.enabled to false.", error.code) from None
        if error.code != SECURITY_DISABLED:
            raise
        return None


def _without_authorizer(admin: Admin) -> str:
    return f"{admin.alias}: the cluster has no authorizer; ACLs are not synced"
