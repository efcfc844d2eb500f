"""Whatever claims and volumes there are: no volume is two claims', no claim has two volumes, the least is taken."""

from __future__ import annotations

from functools import partial
from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.volumes.annotations import BIND_COMPLETED
from plimsoll.local.volumes.matching import choose_best_volume
from plimsoll.local.volumes.plan import BindClaim, ClaimView, plan_claim, plan_volume
from plimsoll.local.volumes.provisioning import choose_location_by_class
from plimsoll.objects.api.meta import ObjectMeta, ObjectReference
from plimsoll.objects.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeResourceRequirements,
)
from tests.effort import choose_calls
from tests.faults import CrashAfter
from tests.local.local_cluster import CrashingLocalCluster
from tests.local.volumes.builders import (
    CLAIMS,
    CLASSES,
    NODES,
    VOLUMES,
    VolumeCluster,
    claim,
    node,
    storage_class,
    volume,
)

ZONE = "topology.kubernetes.io/zone"
_SIZES = st.integers(1, 6)
_MODES = st.sets(st.sampled_from(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]), min_size=1).map(sorted).map(tuple)
_CLASSES = st.sampled_from(["", "a"])


@st.composite
def _volumes(draw: st.DrawFn) -> list[PersistentVolume]:
    count = draw(st.integers(0, 6))
    return [
        PersistentVolume(
            metadata=ObjectMeta(name=f"v{number}", uid=f"v{number}"),
            spec=PersistentVolumeSpec(
                capacity={"storage": f"{draw(_SIZES)}Gi"},
                access_modes=draw(_MODES),
                storage_class_name=draw(_CLASSES),
                claim_ref=draw(
                    st.none()
                    | st.builds(
                        ObjectReference, namespace=st.just("ns"), name=st.sampled_from(["c0", "c1", "elsewhere"])
                    )
                ),
            ),
            status=PersistentVolumeStatus(phase=draw(st.sampled_from(["Available", "Released"]))),
        )
        for number in range(count)
    ]


@st.composite
def _claims(draw: st.DrawFn) -> list[PersistentVolumeClaim]:
    count = draw(st.integers(1, 4))
    return [
        PersistentVolumeClaim(
            metadata=ObjectMeta(namespace="ns", name=f"c{number}", uid=f"uid-{number}"),
            spec=PersistentVolumeClaimSpec(
                access_modes=draw(_MODES),
                resources=VolumeResourceRequirements(requests={"storage": f"{draw(_SIZES)}Gi"}),
                storage_class_name=draw(_CLASSES),
                volume_name=draw(st.sampled_from(["", "", "v0", "v1"])),
            ),
        )
        for number in range(count)
    ]


def _taken(persistent_volume: PersistentVolume, by: PersistentVolumeClaim) -> PersistentVolume:
    reference = ObjectReference(namespace=by.metadata.namespace, name=by.metadata.name, uid=by.metadata.uid)
    spec = PersistentVolumeSpec(
        capacity=persistent_volume.spec.capacity,
        access_modes=persistent_volume.spec.access_modes,
        storage_class_name=persistent_volume.spec.storage_class_name,
        claim_ref=reference,
    )
    return PersistentVolume(
        metadata=persistent_volume.metadata, spec=spec, status=PersistentVolumeStatus(phase="Bound")
    )


@settings(max_examples=200, deadline=None)
@given(claims=_claims(), volumes=_volumes())
def test_no_volume_is_given_twice(claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume]):
    world = {persistent_volume.metadata.name: persistent_volume for persistent_volume in volumes}
    owners: dict[str, str] = {}
    for wanting in claims:
        named = world.get(wanting.spec.volume_name)
        plan = plan_claim(ClaimView(claim=wanting, named=named, volumes=tuple(world.values())))
        if isinstance(plan, BindClaim):
            assert plan.volume not in owners
            owners[plan.volume] = wanting.metadata.name
            world[plan.volume] = _taken(world[plan.volume], wanting)


@settings(max_examples=200, deadline=None)
@given(claims=_claims(), volumes=_volumes())
def test_a_claim_that_is_bound_never_gets_another_volume(
    claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume]
):
    wanting = claims[0]
    bound = PersistentVolumeClaim(
        metadata=ObjectMeta(namespace="ns", name="c0", uid="uid-0", annotations={BIND_COMPLETED: "yes"}),
        spec=wanting.spec,
    )
    named = next(
        (
            persistent_volume
            for persistent_volume in volumes
            if persistent_volume.metadata.name == wanting.spec.volume_name
        ),
        None,
    )
    plan = plan_claim(ClaimView(claim=bound, named=named, volumes=tuple(volumes)))
    assert not isinstance(plan, BindClaim) or plan.volume == wanting.spec.volume_name


@settings(max_examples=200, deadline=None)
@given(claims=_claims(), volumes=_volumes())
def test_nothing_smaller_would_have_done(claims: list[PersistentVolumeClaim], volumes: list[PersistentVolume]):
    wanting = claims[0]
    free = [persistent_volume for persistent_volume in volumes if persistent_volume.spec.claim_ref is None]
    chosen = choose_best_volume(wanting, free)
    suiting = [
        persistent_volume
        for persistent_volume in free
        if persistent_volume.status.phase == "Available"
        and persistent_volume.spec.storage_class_name == (wanting.spec.storage_class_name or "")
        and set(wanting.spec.access_modes) <= set(persistent_volume.spec.access_modes)
        and _gib(persistent_volume.spec.capacity["storage"]) >= _gib(wanting.spec.resources.requests["storage"])
    ]
    assert (chosen is None) == (not suiting)
    if chosen is not None:
        assert chosen in suiting
        alike = [
            persistent_volume
            for persistent_volume in suiting
            if len(persistent_volume.spec.access_modes) == len(chosen.spec.access_modes)
        ]
        assert _gib(chosen.spec.capacity["storage"]) == min(
            _gib(persistent_volume.spec.capacity["storage"]) for persistent_volume in alike
        )


@settings(max_examples=100, deadline=None)
@given(volumes=_volumes(), claims=_claims())
def test_a_volume_is_bound_only_to_a_claim_that_names_it(
    volumes: list[PersistentVolume], claims: list[PersistentVolumeClaim]
):
    for persistent_volume in volumes:
        for other in claims:
            plan = plan_volume(_taken(persistent_volume, other), other)
            if plan.phase == "Bound" and not plan.looks_at_claim:
                assert other.spec.volume_name == persistent_volume.metadata.name


@settings(max_examples=100, deadline=None)
@given(
    allowed=st.lists(st.sampled_from("abc"), max_size=3, unique=True),
    nodes=st.sets(st.sampled_from("abcd")),
    counts=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 5)),
)
def test_a_volume_is_made_only_in_zones_that_are_allowed(allowed: list[str], nodes: set[str], counts: dict[str, int]):
    expression = TopologySelectorLabelRequirement(key=ZONE, values=tuple(allowed))
    terms = (TopologySelectorTerm(match_label_expressions=(expression,)),) if allowed else ()
    place = choose_location_by_class(StorageClass(allowed_topologies=terms), node_zones=nodes, volumes_in=counts)
    candidates = set(allowed) or nodes
    if not candidates:
        assert place.labels == ()
        return
    ((key, (zone,)),) = place.labels
    assert key == ZONE
    assert zone in candidates
    assert counts.get(zone, 0) == min(counts.get(candidate, 0) for candidate in candidates)


def _gib(text: object) -> int:
    return int(str(text).removesuffix("Gi"))


# ---- crashes


class _CrashingVolumeCluster(CrashingLocalCluster, VolumeCluster):
    """The process dies after some call; the next one goes on."""

    def __init__(self, crash: CrashAfter) -> None:
        self.crashes_by(crash)
        super().__init__(through=self.through_the_crash)


def _reported_with_crash_after(n: int) -> bool:
    """Whether the crash struck. Steps may be taken twice, so they say what is wanted."""
    crash = CrashAfter(n)
    with _CrashingVolumeCluster(crash) as w:
        w.surviving(lambda: w.ask("POST", NODES, node("n1", "z1")))
        w.surviving(lambda: w.ask("POST", CLASSES, storage_class()))
        w.surviving(lambda: w.ask("POST", VOLUMES, volume("static", size="2Gi")))
        w.surviving(lambda: w.ask("POST", CLAIMS, claim("made", storageClassName="fast")))
        w.surviving(lambda: w.ask("POST", CLAIMS, claim("found", storageClassName="")))
        w.surviving(lambda: w.run.advance_by(1))
        assert w.phases(CLAIMS) == {"made": "Bound", "found": "Bound"}, n
        names = {item["spec"]["claimRef"]["name"] for item in w.ask("GET", VOLUMES).body["items"]}
        assert (len(w.phases(VOLUMES)), names) == (2, {"made", "found"}), n
        for name in ("made", "found"):
            w.surviving(partial(w.ask, "DELETE", f"{CLAIMS}/{name}"))
        w.surviving(lambda: w.run.advance_by(1))
        assert (w.phases(CLAIMS), w.phases(VOLUMES)) == ({}, {"static": "Released"}), n
    return crash.struck is not None


def test_a_crash_after_any_call_loses_nothing_and_makes_nothing_twice():
    struck = list(takewhile(_reported_with_crash_after, choose_calls(1000)))
    assert struck[-1] > 17
