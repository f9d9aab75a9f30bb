"""Handlers of `/heliograph/v1` and of the probes: flows and their partitions, from one model of state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.secrets.known_secrets import hide_known
from heliograph.connect.contract.refusals import NO_SUCH_FLOW
from heliograph.status.json_views import flow_json, loss_json, partition_json
from heliograph.status.partition_status import PartitionState
from heliograph.web.endpoints.request_bodies import restart_request
from heliograph.web.error_responses import WRONG_PARAMETER
from heliograph.web.exchange import RestResponse, json_answer

if TYPE_CHECKING:
    from heliograph.status.flow_snapshot import FlowSnapshot
    from heliograph.web.exchange import Call


_MOST_IN_PAGE = 1_000  # a larger page would keep reports of tasks waiting while it is rendered
_MOST_DIGITS = 9


def list_flows(call: Call) -> RestResponse:
    """Return the sums of every flow that the caller may see."""
    return json_answer({"flows": [flow_json(flow, hide_known) for flow in call.herder.flows()]})


def get_flow(call: Call) -> RestResponse:
    """Return the sums of one flow."""
    return json_answer(flow_json(_flow(call), hide_known))


def list_partitions(call: Call) -> RestResponse:
    """Return the partitions of a flow, by topic and number: those of a state and of a topic, a page at a time."""
    state, topic = call.query.get("state", [None])[0], call.query.get("topic", [None])[0]
    if state is not None and state not in set(PartitionState):
        raise WRONG_PARAMETER.error(name="state", expected=f"one of {', '.join(PartitionState)}")
    start, limit = _page(call)
    flow = _flow(call)
    found = [each for each in flow.partitions if state in (None, each.state.value) and topic in (None, each.tp.topic)]
    end = start + limit
    page = {"total": len(found), "next": end if end < len(found) else None}
    return json_answer({"partitions": [partition_json(each, hide_known) for each in found[start:end]], **page})


def list_losses(call: Call) -> RestResponse:
    """Return the losses of all flows that the caller may see, or of one, the newest first, a page at a time."""
    name = call.query.get("flow", [None])[0]
    start, limit = _page(call)
    flows = [flow for flow in call.herder.losses() if name in (None, flow.name)]
    if name is not None and not flows:
        raise NO_SUCH_FLOW.error(name=name)
    found = sorted(
        ((flow.name, loss) for flow in flows for loss in flow.losses), key=lambda each: each[1].at_ms, reverse=True
    )
    end = start + limit
    page = {"total": len(found), "next": end if end < len(found) else None}
    return json_answer({"losses": [loss_json(*each) for each in found[start:end]], **page})


def restart_partitions(call: Call) -> RestResponse:
    """Restart the partitions that the body names, or all tasks of the flow; return the partitions."""
    restarted = call.herder.restart_partitions(call.path["flow"], restart_request(call.body))
    rows = [
        {"topic": each.tp.topic, "partition": each.tp.partition, "from": each.position, "skipped": each.skipped}
        for each in restarted
    ]
    return json_answer({"restarted": rows}, 202)


def live(call: Call) -> RestResponse:  # noqa: ARG001
    """Return that the process answers."""
    return json_answer({"status": "live"})


def ready(call: Call) -> RestResponse:
    """Return whether the worker is ready and every flow reaches its clusters and moves; if not, why.

    The status is that of all flows, also of those that the caller may not see.
    """
    reasons: list[dict[str, str | None]] = [
        {"flow": each.name, "reason": hide_known(each.reason)} for each in call.herder.unready()
    ]
    if not call.herder.is_ready():
        reasons.append({"flow": None, "reason": "the worker is starting"})
    return json_answer({"status": "not ready" if reasons else "ready", "reasons": reasons}, 503 if reasons else 200)


def not_ready() -> RestResponse:
    """Return the response of a worker that did not answer in time."""
    return json_answer({"status": "not ready", "reasons": [{"flow": None, "reason": "the worker is stuck"}]}, 503)


def _flow(call: Call) -> FlowSnapshot:
    name = call.path["flow"]
    for flow in call.herder.flows():
        if flow.name == name:
            return flow
    raise NO_SUCH_FLOW.error(name=name)


def _page(call: Call) -> tuple[int, int]:
    """Return where a page starts, and how much it may have."""
    start, limit = _number(call, "start", 0), _number(call, "limit", _MOST_IN_PAGE)
    if not 1 <= limit <= _MOST_IN_PAGE:
        raise WRONG_PARAMETER.error(name="limit", expected=f"a number from 1 to {_MOST_IN_PAGE}")
    return start, limit


def _number(call: Call, name: str, default: int) -> int:
    text = call.query.get(name, [str(default)])[0]
    if not text.isdecimal() or not text.isascii() or len(text) > _MOST_DIGITS:
        raise WRONG_PARAMETER.error(name=name, expected="a number")
    return int(text)
