"""What providers say, as the registry takes it."""

import pytest

from plimsoll.nodes.cluster_state import observed
from plimsoll.nodes.cluster_state.observed import call_error, observed_instance
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


@pytest.mark.parametrize("kind", values.ErrorClass)
def test_errors_of_instances(kind: values.ErrorClass):
    error = values.InstanceError(error_class=kind, code="QUOTA", message="no more")
    found = observed_instance(values.Instance(id="a", state=values.InstanceState.CREATING, error=error))
    assert found.failed_to_create
    assert found.error is not None
    assert (found.error.error_class, found.error.code, found.error.message) == (int(kind), "QUOTA", "no more")


@pytest.mark.parametrize("kind", values.FailureKind)
def test_failures_of_calls(kind: values.FailureKind):
    found = call_error(values.CallFailed(kind=kind, message="sorry"))
    assert (found.code, found.message) == (str(kind), "sorry")
    assert (found.error_class is observed.ErrorClass.OUT_OF_RESOURCE) is (kind is values.FailureKind.OUT_OF_RESOURCES)
