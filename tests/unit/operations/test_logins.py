"""Needs of many clients merged: one login per cluster and principal, and no ACL lost or repeated."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.mirror.acls.acl import TOPIC, Acl, Resource
from heliograph.mirror.acls.name_prefixes import Names
from heliograph.operations.needed_acls import WORKER, LoginNeed, merge_logins
from heliograph.operations.principals import KafkaPrincipal

_SERVERS = st.lists(st.sampled_from(["a:1", "b:1", "c:1", "d:1"]), max_size=2, unique=True).map(tuple)
_KNOWN = st.sampled_from(["User:x", "User:y"]).map(KafkaPrincipal)
_HIDDEN = st.builds(
    KafkaPrincipal,
    st.sampled_from(["User:<the user of k>", "User:<the user of l>"]),
    doubt=st.just("why"),
    is_known=st.just(False),
    hidden_in=st.sampled_from(["${a}", "${b}"]),
)
_ACLS = st.builds(
    Acl,
    st.sampled_from(["READ", "DESCRIBE", "WRITE"]),
    st.builds(Resource, st.just(TOPIC), st.builds(Names, st.sampled_from(["t", "to"]), st.booleans())),
    st.sampled_from([("one",), ("two",)]),
)
_USES = st.builds(LoginNeed, st.sampled_from(["A", "B", WORKER]), _SERVERS, _KNOWN | _HIDDEN, _ACLS)


@given(st.lists(_USES, max_size=12))
def test_each_login_once_with_all_that_its_clients_need(uses: list[LoginNeed]) -> None:
    granted = merge_logins(uses)
    for use in uses:
        covering = [
            each
            for each in granted
            if {use.alias} & {each.login.cluster, *each.login.others}
            and set(use.servers) <= set(each.login.bootstrap)
            and any(acl.includes(use.acl) and set(use.acl.reasons) <= set(acl.reasons) for acl in each.acls)
        ]
        assert covering, use
    for one in granted:
        for other in granted:
            if one is not other and set(one.login.bootstrap) & set(other.login.bootstrap):
                assert one.login.principal != other.login.principal
        assert len(one.acls) == len({(acl.operation, acl.resource) for acl in one.acls})


def test_a_cluster_is_called_by_its_connectors_alias_first() -> None:
    acl = Acl("READ", Resource(TOPIC, Names("t", is_whole=True)), ("why",))
    uses = [LoginNeed(alias, ("b:1",), KafkaPrincipal("User:x"), acl) for alias in (WORKER, "C", "B")]
    (each,) = merge_logins(uses)
    assert (each.login.cluster, each.login.others, each.acls) == ("C", ("B", WORKER), (acl,))
