"""Set-ups of the recordings about custom resources: crd, provisioningrequest."""

from __future__ import annotations

import copy

from tests.conformance.recordings import by_id
from tests.conformance.setups.steps import DEFINITIONS, AdvanceTime, Json, Send, Step, delete, namespace, patch

_GROUP = "/apis/ex.com/v1"


def _custom(plural: str, kind: str, name: str, **spec: object) -> Send:
    body = {"apiVersion": "ex.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return Send("POST", f"{_GROUP}/namespaces/crd/{plural}", body)


def _versions(recorded_id: str) -> list[Json]:
    versions: list[Json] = copy.deepcopy(by_id(recorded_id).body["spec"]["versions"])
    return versions


def _stricter_rules() -> list[Json]:
    """What the definition of `cels` became, so that its object was invalid from then on."""
    versions = _versions("crd-082")
    fields = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["rat"]["maxLength"] = 3
    fields["list"]["items"]["x-kubernetes-validations"][0]["rule"] = "self.startsWith('zz')"
    return versions


def _without_alpha() -> list[Json]:
    versions = _versions("crd-096")
    versions[0]["served"] = False
    return versions


BEFORE: dict[str, list[Step]] = {
    "crd-001": [namespace("crd")],
    # Conditions follow in their own time.
    "crd-002": [AdvanceTime(5)],
    # What was wrongly valid was deleted before the next of the same name.
    **{item: [delete(f"{_GROUP}/namespaces/crd/widgets/bad")] for item in ("crd-026", "crd-028", "crd-030", "crd-036")},
    "crd-080": [AdvanceTime(5)],
    "crd-083": [
        AdvanceTime(5),
        _custom("cels", "Cel", "a", im="x", im2="x", list=["a1"], rat="0123456789"),
    ],
    "crd-092": [patch(f"{DEFINITIONS}/cels.ex.com", {"spec": {"versions": _stricter_rules()}}), AdvanceTime(5)],
    "crd-097": [AdvanceTime(5)],
    "crd-103": [
        Send(
            "PATCH",
            f"{DEFINITIONS}/vers.ex.com",
            {"spec": {"versions": _without_alpha()}},
            content_type="application/merge-patch+json",
            stands_for={"resourceVersion": "790"},
        ),
        AdvanceTime(5),
    ],
    "crd-107": [AdvanceTime(5)],
    "crd-112": [
        AdvanceTime(5),
        _custom("sels", "Sel", "r", color="red"),
        _custom("sels", "Sel", "b", color="blue"),
    ],
    "crd-114": [
        # Held, so that the definition stays while it is asked for.
        patch(f"{_GROUP}/frees/f", {"metadata": {"finalizers": ["ex.com/hold"]}}),
    ],
    "crd-115": [AdvanceTime(5)],
    "crd-117": [
        patch(f"{_GROUP}/frees/f", {"metadata": {"finalizers": None}}),
        AdvanceTime(30),
    ],
    "provisioningrequest-001": [namespace("provreq")],
    "provisioningrequest-003": [AdvanceTime(5)],
}
