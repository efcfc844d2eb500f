"""Sources of decisions: several journals as one, and the last plans that controllers keep in the cluster."""

from __future__ import annotations

from plimsoll.app.console import build_last_plan_decisions
from plimsoll.console.views.decision_sources import CombinedDecisions, JournalDecisions
from plimsoll.journal.entries import Entry, Query
from plimsoll.journal.last_plans import build_last_plans
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.client import Client
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.nodes.permissions import LAST_PLANS_MAP
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun
from tests.journal import builders
from tests.local.apiserver.builders import ADMIN, ApiServerHarness


def test_two_journals_are_one_timeline_whose_numbers_can_be_looked_up() -> None:
    with VirtualRun() as run:
        journals = [MemoryJournal(), MemoryJournal()]
        for second, journal in enumerate([*journals, *journals], 1):
            run.run_until(journal.append(builders.plan(second, subsystem=f"at {second}")))
        combined = CombinedDecisions([JournalDecisions(journal) for journal in journals])
        entries = run.run_until(combined.list_entries(Query()))
        assert [entry.subsystem for entry in entries] == ["at 4", "at 3", "at 2", "at 1"]
        assert len({entry.number for entry in entries}) == 4
        for entry in entries:
            assert run.run_until(combined.get_entry(entry.number)) == entry
        assert run.run_until(combined.get_entry(99)) is None
        newest = run.run_until(combined.explain(builders.GROUP, 1))
        assert [decision.subsystem for decision in newest] == ["at 4"]


def test_last_plans_of_a_cluster_are_decisions() -> None:
    entries = [Entry(number=number, plan=builders.plan(number)) for number in (1, 2)]
    left = Entry(number=3, plan=builders.plan(3, actions=(), not_done=(builders.left("web-0"),)))
    with ApiServerHarness() as world:
        world.run.run_until(world.application.start())
        data = build_last_plans({}, [*entries, left]) | {"odd": "{"}
        config_map = {"metadata": {"name": LAST_PLANS_MAP}, "data": data}
        world.made("/api/v1/namespaces/kube-system/configmaps", config_map)
        client = Client(
            EmbeddedTransport(world.application, token=ADMIN),
            clock=world.run.clock,
            entropy=SeededEntropy("client"),
            settings=ClientSettings(qps=0),
            kinds=OUR_KINDS,
        )
        source = build_last_plan_decisions(client, "kube-system")
        listed = world.run.run_until(source.list_entries(Query()))
        assert [entry.plan.snapshot for entry in listed] == [3, 2]
        assert world.run.run_until(source.get_entry(listed[0].number)) == listed[0]
        (decision,) = world.run.run_until(source.explain(builders.pod("web-0"), 5))
        assert decision.not_done[0].reason.code == "NoFit"
        assert not world.run.run_until(source.explain(builders.pod("other"), 5))
