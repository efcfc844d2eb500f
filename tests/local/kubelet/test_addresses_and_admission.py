"""Addresses, image names, paces and books: the small parts of the virtual kubelet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.local.kubelet.addresses import AddressPool, AddressPools
from plimsoll.local.kubelet.admission import AdmittedPods
from plimsoll.local.kubelet.containers import normalize_image_name
from plimsoll.local.kubelet.settings import KubeletSettings, Pace, read_pace
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod


def test_a_pool_gives_each_user_an_address_and_the_same_one_again():
    pool = AddressPool("10.0.0.0/29")
    assert [pool.assign_address(user) for user in "aba"] == ["10.0.0.1", "10.0.0.2", "10.0.0.1"]


def test_a_pool_skips_what_is_in_use():
    pool = AddressPool("10.0.0.0/29")
    assert pool.assign_address("old", has="10.0.0.1") == "10.0.0.1"
    assert pool.assign_address("new") == "10.0.0.2"


def test_a_pool_that_is_used_up_gives_nothing_until_one_is_released():
    pool = AddressPool("10.0.0.0/30")
    assert [pool.assign_address(user) for user in "abc"] == ["10.0.0.1", "10.0.0.2", ""]
    pool.release("a")
    assert pool.assign_address("c") == "10.0.0.1"


def test_a_network_that_is_none_is_refused():
    with pytest.raises(InvalidInput):
        AddressPool("somewhere")


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1.27", "docker.io/library/nginx:1.27"),
        ("me/app", "docker.io/me/app:latest"),
        ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
        ("localhost:5000/app", "localhost:5000/app:latest"),
        ("app@sha256:00", "docker.io/library/app@sha256:00"),
    ],
)
def test_images_have_full_names(image: str, full: str):
    assert normalize_image_name(image) == full


def pod_with(**annotations: str) -> Pod:
    given = {f"plimsoll.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return msgspec.convert({"metadata": {"annotations": given}}, Pod)


def test_a_pod_says_its_own_pace():
    pod = pod_with(start_seconds="2.5", run_seconds="60", exit_code="3", stop_seconds="1")
    assert read_pace(pod, KubeletSettings()) == Pace(start_s=2.5, stop_s=1.0, run_s=60.0, exit_code=3)


@pytest.mark.parametrize("nonsense", ["", "soon", "-1", "nan", "1h", "٣"])
def test_an_annotation_that_cannot_be_read_counts_as_absent(nonsense: str):
    pod = pod_with(start_seconds=nonsense, run_seconds=nonsense, exit_code=nonsense)
    pace = read_pace(pod, KubeletSettings(start_s=4))
    if nonsense != "٣":  # a digit of another script is a number to Python, and harmless as one
        assert (pace.start_s, pace.run_s) == (4, None)
    assert pace.exit_code == 0


@pytest.mark.parametrize("wrong", [{"boot_s": -1}, {"start_s": float("nan")}, {"workers": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]):
    with pytest.raises(InvalidInput):
        KubeletSettings(**wrong)


def test_books_count_a_pod_once_and_let_it_leave():
    node = msgspec.convert({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "pods": "9"}}}, Node)
    containers = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    pod = msgspec.convert({"metadata": {"uid": "u"}, "spec": {"nodeName": "n", "containers": containers}}, Pod)
    books = AdmittedPods()
    books.add_node("n")
    assert books.check(pod, node) is None
    books.add(pod)
    books.add(pod)
    refused = books.check(pod, node)
    assert refused is not None
    assert refused.reason == "OutOfcpu"
    books.remove("u")
    books.remove("u")
    assert books.check(pod, node) is None


def test_users_get_addresses_of_the_network_they_are_in():
    pools = AddressPools("10.9.0.0/29")
    assert pools.assign_address("a", "10.0.0.0/29") == "10.0.0.1"
    assert pools.assign_address("b", "10.1.0.0/29") == "10.1.0.1"
    assert pools.assign_address("c", "") == "10.9.0.1"


def test_a_node_that_moves_to_another_network_frees_its_address():
    pools = AddressPools("10.9.0.0/29")
    pools.assign_address("a", "10.0.0.0/30")
    pools.assign_address("b", "10.0.0.0/30")
    pools.assign_address("a", "10.1.0.0/30")
    assert pools.assign_address("c", "10.0.0.0/30") == "10.0.0.1"


def test_a_closed_network_is_forgotten_when_the_last_one_has_left_it():
    pools = AddressPools("10.9.0.0/29")
    pools.assign_address("a", "10.0.0.0/29")
    pools.close("10.0.0.0/29")
    assert pools.networks == ["10.0.0.0/29"]
    pools.release("a")
    assert pools.networks == []


def test_a_network_that_is_used_again_keeps_its_addresses():
    pools = AddressPools("10.9.0.0/29")
    pools.assign_address("a", "10.0.0.0/29")
    pools.close("10.0.0.0/29")
    assert pools.assign_address("b", "10.0.0.0/29") == "10.0.0.2"
    pools.release("a")
    pools.release("b")
    assert pools.networks == ["10.0.0.0/29"]
