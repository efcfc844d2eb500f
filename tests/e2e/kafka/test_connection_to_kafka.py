"""Connections to real brokers: TLS and SASL, and why a connection fails, in one sentence without secrets."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.brokers.connection_settings import parse_connection_settings, read_connection_settings
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.brokers.source import describe_cluster
from plimsoll.kafka.model.description import TopicPartition
from tests.e2e.kafka.real_kafka import SCRAM_MECHANISMS, SECURE_PASSWORD, SECURE_USER
from tests.e2e.ports import lasting_port

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.kafka.real_kafka import RealKafka

pytestmark = pytest.mark.asyncio


def write_properties(kafka: RealKafka, directory: Path, *, password: str = SECURE_PASSWORD, ca_file: str = "") -> Path:
    """A properties file as Kafka's own tools take it."""
    path = directory / "client.properties"
    path.write_text(
        "# how to reach the cluster\n"
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
        f'    username="{SECURE_USER}" password="{password}";\n'
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={ca_file or kafka.ca_file}\n"
        "default.api.timeout.ms=60000\n"
    )
    return path


async def test_tls_and_sasl_with_a_properties_file(
    kafka: RealKafka, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.create_topic("a", {0: [0, 1]})
    settings = read_connection_settings(kafka.secure_bootstrap, write_properties(kafka, tmp_path))
    assert SECURE_PASSWORD not in repr(settings)
    with caplog.at_level(logging.DEBUG):
        async with KafkaPythonAdmin(settings) as admin:
            nodes = await admin.describe_nodes()
            logs = [await admin.describe_log_dirs(broker.id) for broker in nodes.brokers]
    assert [broker.id for broker in nodes.brokers] == [0, 1, 2]
    assert sum(key.topic == "a" for log in logs for key, _ in log.replicas) == 2
    assert SECURE_PASSWORD not in caplog.text


async def test_a_wrong_password_is_refused_at_once_and_not_repeated(kafka: RealKafka, tmp_path: Path) -> None:
    settings = read_connection_settings(
        kafka.secure_bootstrap, write_properties(kafka, tmp_path, password="wrong-word-of-this-test")
    )
    async with KafkaPythonAdmin(settings) as admin:
        with pytest.raises(KafkaRefused) as refused:
            await admin.describe_nodes()
    assert refused.value.code == "SASL_AUTHENTICATION_FAILED"
    assert "wrong-word-of-this-test" not in str(refused.value)


def write_login(directory: Path, mechanism: str, *, user: str = SECURE_USER, password: str = SECURE_PASSWORD) -> Path:
    """A properties file for SASL without TLS."""
    module = "scram.ScramLoginModule" if mechanism in SCRAM_MECHANISMS else "plain.PlainLoginModule"
    path = directory / "login.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required \\\n"
        f'    username="{user}" password="{password}";\n'
        "default.api.timeout.ms=60000\n"
    )
    return path


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM_MECHANISMS])
async def test_every_mechanism_reads_and_writes(
    kafka: RealKafka, tmp_path: Path, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.create_topic("a", {0: [0, 1]})
    settings = read_connection_settings(kafka.login_bootstrap, write_login(tmp_path, mechanism))
    topic = TopicPartition("a", 0)
    with caplog.at_level(logging.DEBUG):
        async with KafkaPythonAdmin(settings) as admin:
            described = await describe_cluster(admin)
            answer = await admin.alter_reassignments({topic: (1, 2)})
            assert answer.get(topic) is None
    assert [broker.id for broker in described.brokers if broker.log_dirs is not None] == [0, 1, 2]
    kafka.wait_until(lambda: kafka.list_replicas("a") == {0: [1, 2]}, "the partition has moved")
    assert SECURE_PASSWORD not in caplog.text


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM_MECHANISMS])
@pytest.mark.parametrize("wrong", [{"password": "wrong-word-of-this-test"}, {"user": "nobody"}])
async def test_a_login_that_is_wrong_is_refused_by_every_mechanism(
    kafka: RealKafka, tmp_path: Path, mechanism: str, wrong: dict[str, str]
) -> None:
    settings = read_connection_settings(kafka.login_bootstrap, write_login(tmp_path, mechanism, **wrong))
    async with KafkaPythonAdmin(settings) as admin:
        with pytest.raises(KafkaRefused) as refused:
            await admin.describe_nodes()
    assert refused.value.code == "SASL_AUTHENTICATION_FAILED"
    assert "wrong-word-of-this-test" not in str(refused.value)


async def test_a_mechanism_that_the_brokers_do_not_have_is_named(kafka: RealKafka, tmp_path: Path) -> None:
    path = write_properties(kafka, tmp_path)
    path.write_text(path.read_text().replace("sasl.mechanism=PLAIN", "sasl.mechanism=SCRAM-SHA-256"))
    async with KafkaPythonAdmin(read_connection_settings(kafka.secure_bootstrap, path)) as admin:
        with pytest.raises(KafkaRefused, match="SCRAM-SHA-256"):
            await admin.describe_nodes()


async def test_a_certificate_of_an_unknown_authority_is_refused(kafka: RealKafka) -> None:
    properties = {"security.protocol": "SSL", "default.api.timeout.ms": "60000"}
    async with KafkaPythonAdmin(parse_connection_settings(kafka.secure_bootstrap, properties)) as admin:
        with pytest.raises(KafkaRefused, match="certificate of the broker is not trusted"):
            await admin.describe_topics()


async def test_a_port_without_a_server_is_named(kafka: RealKafka) -> None:
    port = lasting_port()
    settings = parse_connection_settings(f"127.0.0.1:{port}", {"default.api.timeout.ms": "300"})
    async with KafkaPythonAdmin(settings) as admin:
        with pytest.raises(KafkaUnavailable, match=f"127.0.0.1:{port}: .*ECONNREFUSED"):
            await admin.describe_nodes()


async def test_one_of_several_bootstrap_servers_is_enough(kafka: RealKafka) -> None:
    bootstrap = f"127.0.0.1:{lasting_port()},{kafka.bootstrap}"
    async with KafkaPythonAdmin(parse_connection_settings(bootstrap, {})) as admin:
        assert (await admin.describe_nodes()).cluster_id == kafka.cluster_id


async def test_the_broker_that_answers_for_all_may_die(kafka: RealKafka) -> None:
    async with KafkaPythonAdmin(parse_connection_settings(kafka.bootstrap, {})) as admin:
        for broker in (0, 1):
            await admin.describe_topics()
            kafka.kill_broker(broker)
            assert (await admin.describe_nodes()).cluster_id == kafka.cluster_id
