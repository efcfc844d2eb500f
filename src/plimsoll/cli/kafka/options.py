"""Options that the Kafka commands share: where the cluster is, what is planned, and how it is executed."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
    from plimsoll.kafka.brokers.rates import RateQueries
    from plimsoll.kafka.brokers.source import LiveClusterSource
    from plimsoll.kafka.model.description import ClusterDescription
    from plimsoll.kafka.model.requests import BrokerLogDir, RebalanceRequest

RECORD_DIRECTORY: Final = "kafka"

BootstrapOption = Annotated[
    str, typer.Option("--bootstrap", "-b", help="Brokers of the cluster, comma-separated.", metavar="HOST:PORT")
]
ConfigOption = Annotated[
    str,
    typer.Option(
        "--command-config", help="Properties file with TLS and SASL settings, as for Kafka's tools.", metavar="FILE"
    ),
]
DumpOption = Annotated[
    list[str] | None,
    typer.Option("-f", "--filename", help="A dump instead of a live cluster; - is stdin.", metavar="FILE"),
]
CapacityOption = Annotated[
    str,
    typer.Option(
        "--capacity", help="Capacities of brokers, as Cruise Control's capacity.json has them.", metavar="FILE"
    ),
]
PrometheusOption = Annotated[
    str,
    typer.Option("--prometheus", help="Prometheus with the brokers' rates, e.g. http://monitor:9090.", metavar="URL"),
]
QueriesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--prometheus-query",
        help="Another query for --prometheus: bytes-in, bytes-out or broker-cpu. May be repeated.",
        metavar="NAME=PROMQL",
    ),
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode",
        help="full, add-brokers, remove-brokers, remove-disks, demote-brokers or fix-offline-replicas.",
        metavar="MODE",
    ),
]
BrokersOption = Annotated[
    str, typer.Option("--brokers", help="The brokers to add, remove or demote, e.g. 3,4.", metavar="IDS")
]
GoalsOption = Annotated[
    str, typer.Option("--goals", help="Goals by priority, comma-separated. Default: Strimzi's list.", metavar="NAMES")
]
SkipCheckOption = Annotated[bool, typer.Option("--skip-hard-goal-check", help="Accept --goals without the hard goals.")]
ExcludedOption = Annotated[
    str, typer.Option("--excluded-topics", help="Topics that do not move: a regular expression.", metavar="REGEX")
]
DestinationsOption = Annotated[
    str, typer.Option("--destination-brokers", help="Replicas move only onto these brokers.", metavar="IDS")
]
LogDirsOption = Annotated[
    str, typer.Option("--log-dirs", help="Log directories to empty, e.g. 0-/data/a,1-/data/a.", metavar="LIST")
]
DiskOption = Annotated[
    bool, typer.Option("--rebalance-disk", help="Balance log directories within brokers, nothing between brokers.")
]
ReliefOption = Annotated[
    bool | None,
    typer.Option(
        "--relief/--no-relief",
        help="Allow few extra moves that bring brokers into their window. Default: in mode full only.",
        show_default=False,
    ),
]


def build_request(
    *,
    mode: str,
    brokers: str,
    goals: str,
    skip_hard_goal_check: bool,
    excluded_topics: str,
    destination_brokers: str,
    log_dirs: str,
    rebalance_disk: bool,
    relief: bool | None,
) -> RebalanceRequest:
    """The request of the options. Raises `InvalidInput` with the name of the option."""
    from plimsoll.kafka.model.requests import Mode, RebalanceRequest

    if mode not in set(Mode):
        raise InvalidInput(f"{mode!r} is not a mode; say one of {', '.join(Mode)}", path="--mode")
    chosen, ids = Mode(mode), read_ids(brokers, path="--brokers")
    needs = chosen in {Mode.ADD_BROKERS, Mode.REMOVE_BROKERS, Mode.DEMOTE_BROKERS}
    if needs and not ids:
        raise InvalidInput(f"mode {mode} needs broker ids, e.g. --brokers 3,4", path="--brokers")
    if ids and not needs:
        raise InvalidInput(f"mode {mode} takes no broker ids", path="--brokers")
    pairs = _read_log_dirs(log_dirs)
    if chosen is Mode.REMOVE_DISKS and not pairs:
        raise InvalidInput("mode remove-disks needs log directories, e.g. --log-dirs 0-/data/a", path="--log-dirs")
    if pairs and chosen is not Mode.REMOVE_DISKS:
        raise InvalidInput(f"mode {mode} takes no log directories; remove-disks does", path="--log-dirs")
    if rebalance_disk and chosen is not Mode.FULL:
        raise InvalidInput(f"moves nothing between brokers: mode {mode} cannot use it", path="--rebalance-disk")
    return RebalanceRequest(
        mode=chosen,
        brokers=ids,
        log_dirs=pairs,
        goals=tuple(split_list(goals, path="--goals")),
        skip_hard_goal_check=skip_hard_goal_check,
        excluded_topics=excluded_topics,
        destination_brokers=read_ids(destination_brokers, path="--destination-brokers"),
        rebalance_disk=rebalance_disk,
        relief=relief,
    )


def read_ids(text: str, *, path: str) -> tuple[int, ...]:
    """Broker ids of a comma-separated list."""
    from plimsoll.core.value_parsing import read_whole_number

    ids = []
    for part in split_list(text, path=path):
        number = read_whole_number(part)
        if number is None:
            raise InvalidInput(f"{part!r} is not a broker id", path=path)
        ids.append(number)
    return tuple(dict.fromkeys(ids))


def _read_log_dirs(text: str) -> tuple[BrokerLogDir, ...]:
    from plimsoll.kafka.model.requests import BrokerLogDir

    pairs = []
    for part in split_list(text, path="--log-dirs"):
        broker, _, path = part.partition("-")
        if not broker or not path.startswith("/"):
            raise InvalidInput(f"{part!r} is not BROKER-/PATH, e.g. 0-/data/a", path="--log-dirs")
        ids = read_ids(broker, path="--log-dirs")
        pairs.append(BrokerLogDir(broker=ids[0], path=path))
    return tuple(pairs)


def split_list(text: str, *, path: str) -> list[str]:
    """The names of a comma-separated list. One that is given and names nothing is a mistake."""
    from plimsoll.core.value_parsing import parse_list

    names = parse_list(text, commas=True)
    if text and not names:
        raise InvalidInput(f"{text!r} names nothing", path=path)
    return names


def read_queries(given: list[str] | None, *, prometheus: str) -> RateQueries | None:
    """The queries for rates; None: the built-in ones. Raises `InvalidInput` with the name of the option."""
    from plimsoll.kafka.brokers.rates import QUERY_NAMES, RateQueries, find_query_problem

    path = "--prometheus-query"
    if given and not prometheus:
        raise InvalidInput("needs --prometheus URL", path=path)
    queries: dict[str, str] = {}
    for text in given or ():
        name, equals, query = (part.strip() for part in text.partition("="))
        if name not in QUERY_NAMES or not equals:
            raise InvalidInput(f"{text!r} is not NAME=PROMQL with a NAME of {', '.join(QUERY_NAMES)}", path=path)
        if QUERY_NAMES[name] in queries:
            raise InvalidInput(f"{name} is given twice", path=path)
        if problem := find_query_problem(query):
            raise InvalidInput(f"{name}: {problem}", path=path)
        queries[QUERY_NAMES[name]] = query
    return RateQueries(**queries) if queries else None


@asynccontextmanager
async def connect(bootstrap: str, command_config: str) -> AsyncIterator[KafkaPythonAdmin]:
    """A connection to the cluster."""
    from plimsoll.kafka.brokers.connection_settings import read_connection_settings
    from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin

    if not bootstrap:
        raise InvalidInput("name a broker, e.g. --bootstrap localhost:9092", path="--bootstrap")
    settings = read_connection_settings(bootstrap, Path(command_config) if command_config else None)
    async with KafkaPythonAdmin(settings) as admin:
        yield admin


def choose_dump(filenames: list[str] | None) -> str:
    """The only dump that is named; empty: none is. Raises `InvalidInput` if there are several."""
    if filenames and len(filenames) > 1:
        raise InvalidInput(f"one dump is read, and {len(filenames)} are given: {', '.join(filenames)}", path="-f")
    return filenames[0] if filenames else ""


async def read_cluster(
    *,
    bootstrap: str,
    command_config: str,
    filename: str,
    capacity: str = "",
    prometheus: str = "",
    queries: RateQueries | None = None,
) -> ClusterDescription:
    """The description of a live cluster or of a dump."""
    from plimsoll.cli.shared.output import read_file
    from plimsoll.kafka.brokers.dump import parse_dump

    if bool(bootstrap) == bool(filename):
        raise InvalidInput("say either --bootstrap HOST:PORT or -f DUMP", path="--bootstrap")
    if filename and prometheus:
        raise InvalidInput("a dump holds its rates; give it to plimsoll kafka dump", path="--prometheus")
    if filename and command_config:
        raise InvalidInput("a dump needs no connection; give it with --bootstrap only", path="--command-config")
    if filename:
        with name_file_in_errors(filename):
            description, unknown = parse_dump(read_file(filename))
        _warn(filename, unknown)
    else:
        async with (
            connect(bootstrap, command_config) as admin,
            open_source(admin, prometheus=prometheus, queries=queries) as source,
        ):
            description = await source.describe()
    return add_capacities(description, capacity)


@contextmanager
def name_file_in_errors(filename: str) -> Iterator[None]:
    """Mistakes in what was read from a file name the file; no file if `filename` is empty."""
    try:
        yield
    except InvalidInput as error:
        if not filename or error.path == filename:
            raise
        raise InvalidInput(error.problem, path=f"{filename}: {error.path}" if error.path else filename) from None


def _warn(filename: str, unknown: list[str]) -> None:
    for path in unknown:
        typer.echo(f"warning: {filename}: {path} is not known and is ignored", err=True)


@asynccontextmanager
async def open_source(
    admin: KafkaPythonAdmin,
    *,
    prometheus: str,
    queries: RateQueries | None = None,
    remembers_offsets: bool = False,
) -> AsyncIterator[LiveClusterSource]:
    """Descriptions of a live cluster. Rates come from Prometheus, or from end offsets that are remembered."""
    from plimsoll.kafka.brokers.rates import OffsetSampler
    from plimsoll.kafka.brokers.source import LiveClusterSource
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.web.client import AiohttpClient, check_base_url
    from plimsoll.web.prometheus import Prometheus

    sampler = OffsetSampler() if remembers_offsets else None
    if not prometheus:
        yield LiveClusterSource(admin, RealClock(), sampler=sampler)
        return
    base = check_base_url(prometheus, path="--prometheus")
    async with AiohttpClient() as web:
        rates = Prometheus(base, web=web)
        yield LiveClusterSource(admin, RealClock(), prometheus=rates, queries=queries, sampler=sampler)


def add_capacities(description: ClusterDescription, capacity: str, *, warns: bool = True) -> ClusterDescription:
    """The description with the capacities of a file. Fields that are not known are named on stderr."""
    from plimsoll.cli.shared.output import read_file
    from plimsoll.kafka.brokers.capacities import apply_capacities, list_unknown_fields, parse_capacities

    if not capacity:
        return description
    data = read_file(capacity)
    capacities = parse_capacities(data, name=capacity)
    if warns:
        _warn(capacity, list_unknown_fields(data))
    return apply_capacities(description, capacities)
