"""What the deployment planner promises, whatever the order in which replica sets follow and pods become ready.

The world here is a model without a server: sets with pods, statuses that lag behind, and templates that change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.controller_manager.workloads.deployments.plan import RolloutPlan, plan_rollout
from plimsoll.local.controller_manager.workloads.deployments.replica_counts import (
    compute_max_surge,
    compute_max_unavailable,
    scale_value,
)
from plimsoll.local.controller_manager.workloads.deployments.revisions import OwnedSet, select_surplus_history
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.workloads import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def deployment(
    replicas: int = 3, *, surge: int | str = "25%", unavailable: int | str = "25%", **spec: Any
) -> Deployment:
    rolling = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    strategy = DeploymentStrategy(type="RollingUpdate", rolling_update=rolling)
    whole = DeploymentSpec(replicas=replicas, strategy=strategy, progress_deadline_seconds=600, **spec)
    return Deployment(metadata=ObjectMeta(name="d", generation=1), spec=whole)


@dataclass
class ModelReplicaSet:
    """A replica set and its pods. `reported` is its status as it was last written."""

    name: str
    template: int
    size: int
    annotations: dict[str, str]
    made: datetime
    total: int = 0
    available: int = 0
    reported: tuple[int, int] = (0, 0)

    def follow(self) -> None:
        """What the replica set controller does: pods as many as wanted, those that are not ready go first."""
        self.total = self.size
        self.available = min(self.available, self.size)
        self.reported = (self.total, self.available)

    def get_ready(self) -> None:
        self.available = min(self.available + 1, self.total)

    def view(self) -> ReplicaSet:
        metadata = ObjectMeta(name=self.name, generation=1, annotations=self.annotations, creation_timestamp=self.made)
        replicas, available = self.reported
        status = ReplicaSetStatus(
            observed_generation=1, replicas=replicas, ready_replicas=available, available_replicas=available
        )
        return ReplicaSet(metadata=metadata, spec=ReplicaSetSpec(replicas=self.size), status=status)


@dataclass
class Model:
    deployment: Deployment
    template: int = 1
    now: datetime = START
    sets: list[ModelReplicaSet] = field(default_factory=list)

    def plan(self) -> RolloutPlan:
        owned = [OwnedSet(view=model_set.view(), is_new=model_set.template == self.template) for model_set in self.sets]
        return plan_rollout(self.deployment, owned, self.now, new_name=f"d-{self.template}")

    def turn(self) -> RolloutPlan:
        self.now += timedelta(seconds=5)
        plan = self.plan()
        if plan.create is not None:
            new = plan.create
            self.sets.append(ModelReplicaSet(new.name, self.template, new.replicas, dict(new.annotations), self.now))
        by_name = {model_set.name: model_set for model_set in self.sets}
        for change in plan.changes:
            changed = by_name[change.replica_set.metadata.name]
            changed.annotations |= change.annotations
            changed.size = changed.size if change.replicas is None else change.replicas
        if plan.status is not None:
            self.deployment = msgspec.structs.replace(self.deployment, status=plan.status)
        return plan

    def settle(self) -> None:
        for _ in range(200):
            plan = self.turn()
            for model_set in self.sets:
                model_set.follow()
                for _ in range(model_set.total):
                    model_set.get_ready()
                model_set.follow()
            if plan.create is None and not plan.changes and self.turn().status == plan.status:
                return
        raise AssertionError("does not come to rest")

    @property
    def wanted(self) -> int:
        return self.deployment.spec.replicas or 0

    def sizes(self) -> dict[int, int]:
        return {model_set.template: model_set.size for model_set in self.sets if model_set.size}


FENCES = st.integers(0, 4) | st.integers(0, 100).map(lambda share: f"{share}%")
STEPS = st.lists(st.tuples(st.sampled_from(["turn", "follow", "ready", "template"]), st.integers(0, 5)), max_size=60)


@given(replicas=st.integers(0, 8), surge=FENCES, unavailable=FENCES, steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_a_rollout_keeps_its_fences_and_comes_to_its_end(
    replicas: int, surge: int | str, unavailable: int | str, steps: list[tuple[str, int]]
):
    model = Model(deployment(replicas, surge=surge, unavailable=unavailable))
    model.settle()
    most = replicas + compute_max_surge(model.deployment)
    least = replicas - compute_max_unavailable(model.deployment)
    for step, number in steps:
        one = model.sets[number % len(model.sets)]
        match step:
            case "turn":
                model.turn()
            case "follow":
                one.follow()
            case "ready":
                one.get_ready()
            case _:
                model.template = 1 + number % 3
        assert sum(model_set.size for model_set in model.sets) <= most
        assert sum(model_set.available for model_set in model.sets) >= least
    model.settle()
    assert model.sizes() == ({model.template: replicas} if replicas else {})
    assert {model_set.name for model_set in model.sets if model_set.template == model.template} == {
        f"d-{model.template}"
    }


@given(before=st.integers(0, 10), after=st.integers(0, 10), surge=FENCES, unavailable=FENCES, turns=st.integers(0, 4))
@settings(max_examples=100, deadline=None)
def test_scaling_in_the_middle_of_a_rollout_comes_to_the_wanted_number(
    before: int, after: int, surge: int | str, unavailable: int | str, turns: int
):
    model = Model(deployment(before, surge=surge, unavailable=unavailable))
    model.settle()
    model.template = 2
    for _ in range(turns):
        model.turn()
        for model_set in model.sets:
            model_set.follow()
    spec = msgspec.structs.replace(model.deployment.spec, replicas=after)
    model.deployment = msgspec.structs.replace(model.deployment, spec=spec)
    model.settle()
    assert model.sizes() == ({2: after} if after else {})


def test_a_plan_of_a_settled_deployment_says_nothing_new():
    model = Model(deployment(3))
    model.settle()
    plan = model.plan()
    assert (plan.create, plan.changes, plan.remove) == (None, (), ())
    assert plan.status == model.deployment.status


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (2, 2, 2),
        ("25%", 3, 2),
        ("0%", 0, 0),
        ("100%", 10, 10),
        (None, 3, 2),
        ("odd", 0, 0),
        pytest.param("9" * 5_000 + "%", 0, 0, id="more digits than Python reads"),
    ],
)
def test_shares_are_rounded_up_for_surge_and_down_for_unavailability(value: int | str | None, up: int, down: int):
    assert scale_value(value, 10, up=True) == up
    assert scale_value(value, 10, up=False) == down


def test_where_nothing_may_change_one_may_be_unavailable():
    fixed = deployment(3, surge=0, unavailable="1%")
    assert (compute_max_surge(fixed), compute_max_unavailable(fixed)) == (0, 1)


def test_only_sets_at_rest_are_removed_from_the_history():
    model = Model(deployment(1, revision_history_limit=0))
    model.settle()
    model.template = 2
    model.turn()
    busy, *_ = model.sets
    assert select_surplus_history(model.deployment, [OwnedSet(view=busy.view())]) == []
    model.settle()
    at_rest = OwnedSet(view=busy.view())
    assert select_surplus_history(model.deployment, [at_rest]) == [at_rest]
