"""What a new, empty node of an offer would take: the rules' answers for that node alone with its daemons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.classes import ClassTable
from plimsoll.nodes.planning.offers import Offer
from plimsoll.nodes.planning.templates import Templates, empty_node
from plimsoll.nodes.planning.world import Pending
from plimsoll.scheduling import ClusterView, DoesNotFit, Fits, Storage, verdicts
from plimsoll.scheduling.view import NodeState, PlacedPod
from tests.nodes.planning.random_clusters import NAMESPACES, clusters, nodes, pods, waiting
from tests.scheduling.cluster import HOSTNAME, claim, csi_node, node, pod, required, storage_class, term, uses

if TYPE_CHECKING:
    from plimsoll.objects.nodes import Node
    from plimsoll.objects.pods import Pod

SOME = settings(max_examples=40, deadline=None)
NOWHERE = ClusterView.of()


def offer(made: Node, *daemons: Pod, group: str = "g") -> Offer:
    free = NodeState(made).with_pods(PlacedPod(one) for one in daemons).free
    return Offer(
        group=group,
        node=made,
        daemons=daemons,
        free=free,
        capacity=free,
        price_per_hour=1.0,
        planning_price=1.0,
        size=0,
        max_size=10,
        room=10,
    )


def templates(made: Pod, *offers: Offer, view: ClusterView = NOWHERE) -> Templates:
    return Templates(ClassTable.of([Pending(key="a", pod=made, count=1)], view), offers, view)


@SOME
@given(st.data(), clusters(), waiting())
def test_an_offer_takes_what_the_rules_allow_on_its_node_alone(
    data: st.DataObject, view: ClusterView, pending: list[Pending]
):
    offers = [
        offer(one, *(pods(data.draw, f"daemon-{index}", broken=False) for index in range(data.draw(st.integers(0, 2)))))
        for one in nodes(data.draw)
    ]
    table = ClassTable.of(pending, view)
    found = Templates(table, offers, view)

    for row, one in enumerate(offers):
        state = empty_node(one, row)
        alone = ClusterView.of([state.node], namespaces=NAMESPACES, storage=_unlimited(view))
        for daemon in state.pods.values():
            alone = alone.with_pod(daemon.pod, state.name)
        for pods_class in table:
            if pods_class.has_spread or pods_class.has_affinity or pods_class.has_volumes:
                continue
            (verdict,) = verdicts(pods_class.pod, alone).values()
            code = int(found.codes[row, pods_class.index])
            assert (code == 0) == isinstance(verdict, Fits), verdict
            if isinstance(verdict, DoesNotFit):
                assert found.refusal(code).messages == verdict.reason.messages


def _unlimited(view: ClusterView) -> Storage:
    known = view.storage
    return Storage(volumes=known.volumes.values(), claims=known.claims.values(), classes=known.classes.values())


def test_daemons_take_their_share_of_the_node():
    daemon = pod("agent", requests={"cpu": "1500m"})
    found = templates(pod(requests={"cpu": 1}), offer(node(cpu=4), daemon))

    assert found.per_node.tolist() == [[2]]
    assert found.capacity[0, 0] == 2500


def test_a_port_of_a_daemon_is_taken():
    ports: dict[str, Any] = {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}
    found = templates(pod(**ports), offer(node(), pod("agent", **ports)), offer(node()))

    assert found.allowed.tolist() == [[False], [True]]


def test_a_class_with_a_host_port_comes_once_to_a_node():
    made = pod(containers=[{"name": "c", "ports": [{"hostPort": 80}]}])

    assert templates(made, offer(node())).per_node.tolist() == [[1]]


def test_the_name_and_hostname_of_a_template_are_nobodys_to_select():
    pinned = pod(nodeSelector={HOSTNAME: "n1"})

    assert not templates(pinned, offer(node("n1"))).allowed.any()


def test_a_daemon_that_is_avoided_keeps_the_class_off():
    apart = required(term({"app": "agent"}))
    found = templates(pod(**apart), offer(node(), pod("agent", labels={"app": "agent"})), offer(node()))

    assert found.allowed.tolist() == [[False], [True]]


def test_a_refusal_tells_its_detail():
    found = templates(pod(requests={"cpu": 8}), offer(node(cpu=4)))

    assert str(found.why_not(0, 0)) == "Insufficient cpu: cpu needs 8, 4 left"
    assert templates(pod(), offer(node())).why_not(0, 0) is None


def test_new_nodes_have_the_attach_limits_of_their_template():
    view = ClusterView.of(
        storage=Storage(claims=[claim("data")], classes=[storage_class()], csi_nodes=[csi_node("small", count=0)])
    )
    found = templates(pod(**uses("data")), offer(node("small")), offer(node("large")), view=view)

    assert found.allowed.tolist() == [[False], [True]]


def test_no_offers_and_no_classes_give_empty_answers():
    assert templates(pod()).allowed.shape == (0, 1)
    assert Templates(ClassTable.of([], NOWHERE), [offer(node())], NOWHERE).per_node.shape == (1, 0)
