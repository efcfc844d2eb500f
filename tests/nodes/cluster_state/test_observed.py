"""What providers say, as the registry takes it."""

import pytest

from plimsoll.nodes.cluster_state import observed
from plimsoll.nodes.cluster_state.observed import call_error, observed_instance
from plimsoll.nodes.model import call_outcomes
from plimsoll.nodes.providers import values


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (values.InstanceState.RUNNING, observed.InstanceState.RUNNING),
        (values.InstanceState.CREATING, observed.InstanceState.CREATING),
        (values.InstanceState.DELETING, observed.InstanceState.DELETING),
        (values.InstanceState.UNSPECIFIED, None),
    ],
)
def test_states_of_instances(said: values.InstanceState, taken: observed.InstanceState | None):
    found = observed_instance(values.Instance(id="cloud://a", state=said))
    assert (found.id, found.state, found.error) == ("cloud://a", taken, None)


@pytest.mark.parametrize("kind", call_outcomes.ErrorClass)
def test_errors_of_instances(kind: call_outcomes.ErrorClass):
    error = values.InstanceError(error_class=kind, code="QUOTA", message="no more")
    found = observed_instance(values.Instance(id="a", state=values.InstanceState.CREATING, error=error))
    assert found.failed_to_create
    assert found.error is not None
    assert (found.error.error_class, found.error.code, found.error.message) == (int(kind), "QUOTA", "no more")


@pytest.mark.parametrize("kind", call_outcomes.FailureKind)
def test_failures_of_calls(kind: call_outcomes.FailureKind):
    found = call_error(call_outcomes.CallFailed(kind=kind, message="sorry"))
    assert (found.code, found.message) == (str(kind), "sorry")
    assert (found.error_class is observed.ErrorClass.OUT_OF_RESOURCE) is (
        kind is call_outcomes.FailureKind.OUT_OF_RESOURCES
    )
