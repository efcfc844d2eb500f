"""The workers of Kafkas: what each does with its rows (docs/design/fleet.md 1.6)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from plimsoll.core.plans import Ref, Result
from plimsoll.fleet.model.access import AccessPolicy, BillingQuota, GrantedQuota, Grantee, QuotaPolicy
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, KafkaStatus, ScalingType
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.ports import ClusterReport
from plimsoll.journal.entries import Query
from tests.fleet.fleet_rows import NOW, make_cluster, make_kafka, make_policy
from tests.fleet.workers.worlds import FleetWorld, play

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster

DNS = "apps.a.example.com"


def make_home(row_id: str = "a", units: int = 10, **changes: object) -> Cluster:
    return make_cluster(row_id, units, **({"cluster_dns": f"apps.{row_id}.example.com"} | changes))


def test_an_accepted_kafka_is_placed_prepared_and_provisioned():
    async def story(world: FleetWorld) -> None:
        await world.insert(make_home("a", 0), make_home("b"), make_kafka("K1", name="orders"))
        await world.start().run_pass()
        kafka = await world.get_kafka("K1")
        assert kafka.status is KafkaStatus.PROVISIONING
        assert kafka.cluster_id == "cid-b"
        assert kafka.namespace == "kafka-k1"
        assert kafka.bootstrap_server_host == "orders-k1.kas.b.example.com"
        assert kafka.placement_id
        assert kafka.desired_strimzi_version == "strimzi-cluster-operator.v0.23.0-0"
        assert (kafka.desired_kafka_version, kafka.desired_kafka_ibp_version) == ("2.7.0", "2.7")

    play(story)


def test_a_kafka_without_a_cluster_waits_an_hour_and_fails():
    async def story(world: FleetWorld) -> None:
        await world.insert(make_kafka("k1", size_id="x2"))
        instance = world.start(Worker.ACCEPTED_KAFKA)
        await world.clock.sleep(3599)
        await instance.run_pass()
        assert (await world.get_kafka("k1")).status is KafkaStatus.ACCEPTED
        await world.clock.sleep(1)
        await instance.run_pass()
        kafka = await world.get_kafka("k1")
        assert kafka.status is KafkaStatus.FAILED
        assert all(word in kafka.failed_reason for word in ("us-east-1", "aws", "standard", "x2"))
        entries = await instance.journal.list_entries(Query(ref=Ref(kind="kafka", name="k1")))
        failing, waiting = entries
        assert [action.reason.code for action in failing.plan.actions] == ["NoClusterInTime"]
        assert [part.reason.code for part in waiting.plan.not_done] == ["NoCluster"]

    play(story)


def test_a_kafka_that_gets_room_within_the_hour_is_placed():
    async def story(world: FleetWorld) -> None:
        await world.insert(make_home("a", 1), make_kafka("k1", size_id="x2"))
        instance = world.start()
        await instance.run_pass()
        assert (await world.get_kafka("k1")).cluster_id == ""
        await world.insert(make_home("b"))
        await world.clock.sleep(30)
        await instance.run_pass()
        assert (await world.get_kafka("k1")).cluster_id == "cid-b"

    play(story)


def test_no_ready_strimzi_fails_a_kafka_after_five_minutes():
    async def story(world: FleetWorld) -> None:
        await world.insert(make_home(available_strimzi_versions=()), make_kafka("k1"))
        instance = world.start()
        await world.clock.sleep(299)
        await instance.run_pass()
        assert (await world.get_kafka("k1")).status is KafkaStatus.ACCEPTED
        await world.clock.sleep(1)
        await instance.run_pass()
        assert (await world.get_kafka("k1")).status is KafkaStatus.FAILED

    play(story)


def test_a_kafka_that_the_api_has_placed_keeps_its_cluster():
    async def story(world: FleetWorld) -> None:
        await world.insert(make_home("a"), make_home("b"), make_kafka("k1", cluster_id="cid-b"))
        await world.start(Worker.ACCEPTED_KAFKA).run_pass()
        kafka = await world.get_kafka("k1")
        assert (kafka.status, kafka.cluster_id) == (KafkaStatus.PREPARING, "cid-b")

    play(story, make_policy(scaling_type=ScalingType.NONE))


def test_an_unknown_dns_name_is_waited_for_and_then_fails_the_kafka():
    async def story(world: FleetWorld) -> None:
        await world.insert(make_home(cluster_dns=""), make_kafka("k1"))
        instance = world.start()
        await instance.run_pass()
        assert (await world.get_kafka("k1")).status is KafkaStatus.PREPARING
        await world.clock.sleep(300)
        await instance.run_pass()
        assert (await world.get_kafka("k1")).status is KafkaStatus.FAILED

    play(story)


def test_a_kafka_that_a_full_cluster_refused_is_placed_again():
    async def story(world: FleetWorld) -> None:
        await world.insert(
            make_home("a"),
            make_kafka("k1", status=KafkaStatus.PROVISIONING, namespace="kafka-k1", placement_id="old"),
        )
        await world.start(Worker.PROVISIONING_KAFKA).run_pass()
        kafka = await world.get_kafka("k1")
        assert kafka.status is KafkaStatus.PROVISIONING
        assert kafka.cluster_id == "cid-a"
        assert kafka.placement_id not in {"", "old"}
        assert kafka.bootstrap_server_host
        assert kafka.desired_kafka_version == "2.7.0"

    play(story)


def test_deleting_kafkas_are_removed_and_others_wait_for_their_agent():
    async def story(world: FleetWorld) -> None:
        host = {"bootstrap_server_host": "k.kas.example.com", "cluster_id": "cid-a"}
        await world.insert(
            make_home("a"),
            make_kafka("gone", status=KafkaStatus.DELETING, **host),
            make_kafka("never", status=KafkaStatus.DEPROVISION),
            make_kafka("leaving", status=KafkaStatus.DEPROVISION, **host),
        )
        (result,) = await world.start(Worker.DELETING_KAFKA).run_pass()
        assert [kafka.id for kafka in await world.list_kafkas()] == ["leaving"]
        assert result.plan is not None
        assert [part.reason.code for part in result.plan.not_done] == ["NotDeletedYet"]

    play(story)


def test_expired_kafkas_and_those_of_denied_owners_go():
    async def story(world: FleetWorld) -> None:
        await world.insert(
            make_home("a"),
            make_kafka("old", status=KafkaStatus.READY, expires_at=NOW - timedelta(seconds=1)),
            make_kafka("young", status=KafkaStatus.READY, expires_at=NOW + timedelta(hours=1)),
            make_kafka("mallory", status=KafkaStatus.READY, owner="mallory"),
            make_kafka("leaving", status=KafkaStatus.DELETING, owner="mallory"),
        )
        (result,) = await world.start(Worker.GENERAL_KAFKA).run_pass()
        statuses = {kafka.id: kafka.status for kafka in await world.list_kafkas()}
        assert statuses == {
            "old": KafkaStatus.DEPROVISION,
            "young": KafkaStatus.READY,
            "mallory": KafkaStatus.DEPROVISION,
            "leaving": KafkaStatus.DELETING,
        }
        assert {outcome.action.reason.code for outcome in result.outcomes} == {"Expired", "OwnerDenied"}

    play(story, access=AccessPolicy(denied_users=frozenset({"mallory"})))


def test_kafkas_expire_with_the_quota_of_their_organisation():
    ends = NOW + timedelta(days=3)
    billing = BillingQuota(billing_model="eval", expires_at=ends)
    granted = GrantedQuota(instance_type="standard", billing_models=(billing,))
    grantee = Grantee(id="org", instances=5, granted=(granted,))
    access = AccessPolicy(quota=QuotaPolicy(is_enforced=True, organisations={"org": grantee}))

    async def story(world: FleetWorld) -> None:
        owned = {"status": KafkaStatus.READY, "organisation_id": "org"}
        await world.insert(
            make_kafka("trial", desired_kafka_billing_model="eval", **owned),
            make_kafka("paid", desired_kafka_billing_model="standard", expires_at=ends, **owned),
        )
        await world.start(Worker.GENERAL_KAFKA).run_pass()
        expiries = {kafka.id: kafka.expires_at for kafka in await world.list_kafkas()}
        assert expiries == {"trial": ends, "paid": None}

    play(story, access=access)


def test_ready_kafkas_of_silent_and_unready_clusters_are_reported():
    async def story(world: FleetWorld) -> None:
        await world.insert(
            make_home("a", last_report_at=NOW - timedelta(hours=1)),
            make_home("b", last_report_at=NOW),
            make_home("c", status=ClusterStatus.WAITING),
            *(make_kafka(f"k{home}", status=KafkaStatus.READY, cluster_id=f"cid-{home}") for home in "ab"),
        )
        changed = make_kafka("kc", status=KafkaStatus.READY)
        await world.insert(changed)
        process = world.start(Worker.READY_KAFKA)
        (early,) = await process.run_pass()
        assert early.plan is not None
        assert not early.plan.not_done, "no agent could be heard yet"
        await world.clock.sleep(700)
        await world.store.store_report("cid-b", ClusterReport(is_ready=True, at=world.clock.now(), units={}))
        (result,) = await process.run_pass()
        assert result.plan is not None
        assert [(part.reason.code, part.about[0].name) for part in result.plan.not_done] == [("AgentSilent", "ka")]

    play(story)


def test_a_dry_run_and_a_pause_change_no_row():
    async def story(world: FleetWorld) -> None:
        await world.insert(make_home("a"), make_kafka("k1"))
        results = await world.start(dry_run=True, holder="dry").run_pass()
        await world.database.leases.set_pause("ana: upgrade")
        await world.clock.sleep(61)
        results += await world.start().run_pass()
        outcomes = [outcome for result in results for outcome in result.outcomes]
        assert {outcome.result for outcome in outcomes} == {Result.HELD_BACK}
        assert {outcome.reason.code for outcome in outcomes if outcome.reason} == {"DryRun", "Paused"}
        assert (await world.get_kafka("k1")).status is KafkaStatus.ACCEPTED
        assert (await world.get_cluster("a")).empty_since is None

    play(story)


def test_enterprise_clusters_get_no_kafka_that_does_not_name_them():
    async def story(world: FleetWorld) -> None:
        await world.insert(make_home("a", cluster_type=ClusterType.ENTERPRISE), make_kafka("k1"))
        await world.start(Worker.ACCEPTED_KAFKA).run_pass()
        assert (await world.get_kafka("k1")).cluster_id == ""

    play(story)
