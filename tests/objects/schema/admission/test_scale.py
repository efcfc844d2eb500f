from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.schema.admission.scale import ScalePaths, validate_spec, validate_status

PATHS = ScalePaths(
    spec_replicas=".spec.replicas", status_replicas=".status.replicas", label_selector=".status.selector"
)


@pytest.mark.parametrize(
    ("resource", "errors"),
    [
        ({}, []),
        ({"spec": None}, []),
        ({"spec": {"replicas": 3}}, []),
        ({"spec": {"replicas": -6}}, [".spec.replicas: Invalid value: -6: should be a non-negative integer"]),
        (
            {"spec": {"replicas": 2**31}},
            [".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"],
        ),
        (
            {"spec": {"replicas": {"a": [1, "b"]}}},
            [
                (
                    ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: map[a:[1 b]] "
                    "is of the type map[string]interface {}, expected int64"
                )
            ],
        ),
    ],
)
def test_replicas_must_be_a_number_of_pods(resource: dict[str, Any], errors: list[str]):
    assert [error.text for error in validate_spec(resource, PATHS)] == errors


def test_the_selector_must_be_text():
    assert [error.text for error in validate_status({"status": {"selector": 1}}, PATHS)] == [
        '.status.selector: Invalid value: "": .status.selector accessor error: 1 is of the type int64, expected string'
    ]
