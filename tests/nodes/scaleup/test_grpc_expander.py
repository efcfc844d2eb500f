"""The expander outside this program: its requests, and what its answers change (docs/design/nodes.md 6.7 and 9.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.model.scale_up_plan import Result, ScaleUpPlan
from plimsoll.nodes.planning.scaleup.expanders import ExpanderContext, ExpanderOption, Unanswered, choose
from plimsoll.nodes.providers.externalgrpc.codes import Code, RpcFailed
from plimsoll.nodes.providers.externalgrpc.generated import expander_pb2 as wire
from plimsoll.nodes.providers.externalgrpc.methods import BEST_OPTIONS
from plimsoll.nodes.providers.externalgrpc.object_bytes import decode_node, decode_pod
from plimsoll.nodes.scaleup.grpc_expander import GrpcExpander, build_request
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod
from plimsoll.testing import run_virtual
from tests.nodes.planning.scaleup.test_expanders import option

A, B, C = (option(group, nodes=number) for number, group in enumerate("ABC", start=1))


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name))


class FakeExpander:
    """The other end; `answer` is a list of ids, or what it fails with."""

    def __init__(self, answer: list[str] | RpcFailed) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    async def call(self, method: Any, request: Any) -> Any:
        assert method is BEST_OPTIONS
        self.asked.append(wire.BestOptionsRequest.FromString(request.SerializeToString()))
        if isinstance(self.answer, RpcFailed):
            raise self.answer
        return wire.BestOptionsResponse(options=[wire.Option(nodeGroupId=group) for group in self.answer])

    async def close(self) -> None:
        """Nothing is held."""


def grown(
    answer: list[str] | RpcFailed, *options: ExpanderOption, chain: tuple[str, ...] = ("grpc", "least-nodes")
) -> str:
    """The group that a plan chooses with such an expander."""
    expander = GrpcExpander(FakeExpander(answer), max_pods=10)
    found: list[str] = []

    async def plan(policy: Policy) -> ScaleUpPlan:
        best = choose(options, chain, ExpanderContext(answers=policy.expander_answers))
        assert best is not None
        found.append(best.scale_up_option.group)
        return ScaleUpPlan(result=Result.NEEDED)

    run_virtual(expander.plan(Policy(), plan))
    (group,) = found
    return group


# ---- what its answers change


def test_the_expander_narrows_the_choice_and_the_chain_goes_on():
    assert grown(["B", "C"], A, B, C) == "B"
    assert grown(["C"], A, B, C) == "C"


def test_unknown_groups_are_dropped():
    assert grown(["X", "C"], A, B, C) == "C"


@pytest.mark.parametrize("answer", [[], ["X"], RpcFailed(Code.UNAVAILABLE, "down")], ids=["empty", "unknown", "error"])
def test_no_answer_changes_nothing(answer: list[str] | RpcFailed):
    assert grown(answer, A, B, C) == "A"


def test_it_is_asked_only_about_what_is_left():
    expander = FakeExpander(["A"])

    async def plan(policy: Policy) -> ScaleUpPlan:
        choose([A, B, C], ("most-pods", "least-nodes", "grpc"), ExpanderContext(answers=policy.expander_answers))
        return ScaleUpPlan(result=Result.NEEDED)

    run_virtual(GrpcExpander(expander, max_pods=10).plan(Policy(), plan))
    assert expander.asked == []


def test_where_there_is_no_server_to_ask_nothing_changes():
    best = choose([A, B], ("grpc", "least-nodes"), ExpanderContext())
    assert best is A


def test_the_same_answers_give_the_same_plan_without_asking():
    """So that a turn can be replayed from what was recorded."""
    with pytest.raises(Unanswered) as asked:
        choose([A, B], ("grpc",), ExpanderContext(answers={}))
    assert asked.value.options == (A, B)
    expander = GrpcExpander(FakeExpander(["B"]), max_pods=10)
    recorded: list[Policy] = []

    async def plan(policy: Policy) -> ScaleUpPlan:
        choose([A, B], ("grpc",), ExpanderContext(answers=policy.expander_answers))
        recorded.append(policy)
        return ScaleUpPlan(result=Result.NEEDED)

    run_virtual(expander.plan(Policy(), plan))
    (policy,) = recorded
    assert choose([B, A], ("grpc",), ExpanderContext(answers=policy.expander_answers)) is B


def test_a_plan_that_asks_something_else_each_time_comes_to_an_end():
    expander = FakeExpander(["A"])
    tries: list[bool] = []

    async def plan(policy: Policy) -> ScaleUpPlan:
        tries.append(policy.expander_answers is None)
        changed = replace(A, pods=len(tries))
        choose([changed, B], ("grpc",), ExpanderContext(answers=policy.expander_answers))
        return ScaleUpPlan(result=Result.NEEDED)

    run_virtual(GrpcExpander(expander, max_pods=10).plan(Policy(), plan))
    assert tries[-1]
    assert len(expander.asked) == len(tries) - 1


# ---- its requests


def test_each_option_is_reported_with_its_node_and_its_pods():
    helped = replace(A, scheduled_pods=((pod("p"), 2), (pod("q"), 1)))
    asked = build_request([helped, B], max_pods=10)
    first, second = asked.options
    assert (first.nodeGroupId, first.nodeCount) == ("A", 1)
    assert [decode_pod(podbyte).metadata.name for podbyte in first.podBytes] == ["p", "q", "p"]
    assert list(second.podBytes) == []
    assert set(asked.nodeBytesMap) == {"A", "B"}
    assert decode_node(asked.nodeBytesMap["A"]) == A.scale_up_option.node


@given(
    counts=st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=4),
    most=st.integers(4, 60),
)
@settings(deadline=None, max_examples=60)
def test_never_more_pods_than_allowed_nor_more_of_a_class_than_there_are(counts: list[list[int]], most: int):
    options = [
        replace(
            option(f"g{index}", nodes=1), scheduled_pods=tuple((pod(f"p{n}"), pods) for n, pods in enumerate(classes))
        )
        for index, classes in enumerate(counts)
    ]
    asked = build_request(options, max_pods=most)
    sent = [[decode_pod(podbyte).metadata.name for podbyte in option.podBytes] for option in asked.options]
    assert sum(map(len, sent)) <= most
    for names, classes in zip(sent, counts, strict=True):
        assert all(names.count(f"p{n}") <= count for n, count in enumerate(classes))
    if sum(map(sum, counts)) <= most:
        assert [len(names) for names in sent] == [sum(classes) for classes in counts]
