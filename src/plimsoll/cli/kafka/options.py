"""Options that the Kafka commands share: where the cluster is, and how it is read."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared.option_groups import takes_options
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
    from plimsoll.kafka.brokers.rates import RateQueries
    from plimsoll.kafka.brokers.source import LiveClusterSource
    from plimsoll.kafka.model.description import ClusterDescription

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How a live cluster is read."""

    command_config: str = ""
    capacity: str = ""
    prometheus: str = ""
    queries: RateQueries | None = None


def build_source_options(
    *,
    command_config: ConfigOption = "",
    capacity: CapacityOption = "",
    prometheus: PrometheusOption = "",
    prometheus_query: QueriesOption = None,
) -> SourceOptions:
    """The options as given. Raises `InvalidInput` with the name of the option."""
    queries = read_queries(prometheus_query, prometheus=prometheus)
    return SourceOptions(command_config=command_config, capacity=capacity, prometheus=prometheus, queries=queries)


takes_source: Final = takes_options("source", build_source_options)


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


async def read_cluster(*, bootstrap: str, filename: str, source: SourceOptions) -> ClusterDescription:
    """The description of a live cluster or of a dump."""
    from plimsoll.cli.shared.output import read_file
    from plimsoll.kafka.brokers.dump import parse_dump

    if bool(bootstrap) == bool(filename):
        raise InvalidInput("say either --bootstrap HOST:PORT or -f DUMP", path="--bootstrap")
    if filename and source.prometheus:
        raise InvalidInput("a dump holds its rates; give it to plimsoll kafka dump", path="--prometheus")
    if filename and source.command_config:
        raise InvalidInput("a dump needs no connection; give it with --bootstrap only", path="--command-config")
    if filename:
        with name_file_in_errors(filename):
            description, unknown = parse_dump(read_file(filename))
        _warn(filename, unknown)
    else:
        async with (
            connect(bootstrap, source.command_config) as admin,
            open_source(admin, source) as opened,
        ):
            description = await opened.describe()
    return add_capacities(description, source.capacity)


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
    admin: KafkaPythonAdmin, options: SourceOptions, *, remembers_offsets: bool = False
) -> AsyncIterator[LiveClusterSource]:
    """Descriptions of a live cluster. Rates come from Prometheus, or from end offsets that are remembered."""
    from plimsoll.kafka.brokers.rates import OffsetSampler
    from plimsoll.kafka.brokers.source import LiveClusterSource
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.web.client import AiohttpClient, check_base_url
    from plimsoll.web.prometheus import Prometheus

    sampler = OffsetSampler() if remembers_offsets else None
    if not options.prometheus:
        yield LiveClusterSource(admin, RealClock(), sampler=sampler)
        return
    base = check_base_url(options.prometheus, path="--prometheus")
    async with AiohttpClient() as web:
        rates = Prometheus(base, web=web)
        yield LiveClusterSource(admin, RealClock(), prometheus=rates, queries=options.queries, sampler=sampler)


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
