"""Ids of groups that are made: docs/design/nodes.md 5.8."""

import dataclasses
import re

from plimsoll.nodes.model.group_names import Making, Naming, build_suffix, generate_group_id, hash_profile, is_ours
from plimsoll.objects.api.nodes import Taint

MAKING = Making(labels={"a": "1", "b": "2"}, taints=(Taint(key="t", effect="NoSchedule"),), zone="z1", second=1000)
ANY = Naming()


def test_an_id_is_prefix_type_and_eight_characters():
    found = generate_group_id("nodeautoprovisioning", "n1-standard-4", MAKING, naming=ANY)
    assert re.fullmatch(r"nodeautoprovisioning_n1-standard-4_[0-9a-z]{8}", found)


def test_the_same_group_gets_the_same_id_however_its_labels_are_ordered():
    turned = dataclasses.replace(MAKING, labels={"b": "2", "a": "1"})
    assert build_suffix(turned) == build_suffix(MAKING)


def test_everything_that_makes_a_group_another_changes_its_suffix():
    others = [
        dataclasses.replace(MAKING, labels={}),
        dataclasses.replace(MAKING, taints=()),
        dataclasses.replace(MAKING, zone="z2"),
        dataclasses.replace(MAKING, second=1001),
    ]
    assert len({build_suffix(request) for request in (MAKING, *others)}) == 5


def test_an_id_that_is_taken_is_not_given_again():
    first = generate_group_id("p", "m", MAKING, naming=ANY)
    second = generate_group_id("p", "m", MAKING, naming=ANY, taken={first})
    assert second != first
    assert is_ours(second, "p")


def test_without_underscores_ids_are_lower_case_and_cut_in_the_middle():
    found = generate_group_id("Nap", "Type_Of.A-Very-Long-Name", MAKING, naming=Naming(underscores=False, longest=24))
    assert found == f"nap-type-of-a-v-{build_suffix(MAKING)}"
    assert len(found) == 24


def test_ours_are_those_with_the_prefix_and_a_separator():
    assert is_ours("nodeautoprovisioning_n1-highmem4_1234129", "nodeautoprovisioning")
    assert is_ours("nap-a-b", "nap")
    assert not is_ours("nap2-a", "nap")
    assert not is_ours("nap", "nap")


def test_a_profile_is_known_by_labels_and_taints_alone():
    assert hash_profile(MAKING.labels, MAKING.taints) == hash_profile({"b": "2", "a": "1"}, MAKING.taints)
    assert hash_profile({}, ()) != hash_profile({"a": "1"}, ())
