"""Instances and errors of providers, as the registry observes them."""

import pytest

from plimsoll.nodes.cluster_state.observed import build_call_error, to_observed_instance
from plimsoll.nodes.model import call_outcomes
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.nodes.providers import values


@pytest.mark.parametrize(
    ("stated", "taken"),
    [
        (InstanceState.RUNNING, InstanceState.RUNNING),
        (InstanceState.CREATING, InstanceState.CREATING),
        (InstanceState.DELETING, InstanceState.DELETING),
        (InstanceState.UNSPECIFIED, None),
    ],
)
def test_states_of_instances(stated: InstanceState, taken: InstanceState | None):
    found = to_observed_instance(values.Instance(id="cloud://a", state=stated))
    assert (found.id, found.state, found.error) == ("cloud://a", taken, None)


@pytest.mark.parametrize("kind", ErrorClass)
def test_errors_of_instances(kind: ErrorClass):
    error = values.InstanceError(error_class=kind, code="QUOTA", message="no more")
    found = to_observed_instance(values.Instance(id="a", state=InstanceState.CREATING, error=error))
    assert found.failed_to_create
    assert found.error is not None
    assert (found.error.error_class, found.error.code, found.error.message) == (int(kind), "QUOTA", "no more")


@pytest.mark.parametrize("kind", call_outcomes.FailureKind)
def test_failures_of_calls(kind: call_outcomes.FailureKind):
    found = build_call_error(call_outcomes.CallFailed(kind=kind, message="sorry"))
    assert (found.code, found.message) == (str(kind), "sorry")
    assert (found.error_class is ErrorClass.OUT_OF_RESOURCES) is (kind is call_outcomes.FailureKind.OUT_OF_RESOURCES)
