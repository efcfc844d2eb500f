"""`plimsoll tidb planner`: the planning service of one TiDB cluster. It needs PD and Prometheus, no Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared.logs import log_events_to_stderr
from plimsoll.cli.shared.times import read_time
from plimsoll.cli.tidb.tokens import TokenFileOption, read_token
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.tidb.pd.members import BaseCluster
    from plimsoll.tidb.planner.collector import CollectorSettings
    from plimsoll.web.client import AiohttpClient

_INTERVALS_IN_A_WINDOW: Final = 2


def planner(
    *,
    listen: Annotated[str, typer.Option("--listen", help="Address to listen on.", metavar="HOST:PORT")],
    pd: Annotated[str, typer.Option("--pd", help="Address of PD, e.g. http://db-pd.prod:2379.", metavar="URL")],
    tc: Annotated[
        str,
        typer.Option("--tc", help="The TidbCluster: its own pods are the homogeneous instances.", metavar="NS/NAME"),
    ],
    prometheus: Annotated[
        str, typer.Option("--prometheus", help="Address of Prometheus. Default: the one that PD knows.", metavar="URL")
    ] = "",
    pd_token_file: TokenFileOption = "",
    window: Annotated[
        str, typer.Option("--window", help="Window of CPU usage; at least two scrapes.", metavar="DURATION")
    ] = "60s",
    scrape_interval: Annotated[
        str,
        typer.Option(
            "--scrape-interval", help="Scrape interval of Prometheus; metrics are stale after two.", metavar="DURATION"
        ),
    ] = "15s",
    time: Annotated[
        str,
        typer.Option("--time", help="Plan for this time instead of now, e.g. for recorded data.", metavar="RFC3339"),
    ] = "",
    fallback_heterogeneous: Annotated[
        bool,
        typer.Option("--fallback-heterogeneous", help="Scale out groups where the base cluster may not grow."),
    ] = False,
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            help="Replace a query, e.g. tikv.cpu_used=PROMQL, containing %window%; may be repeated.",
            metavar="NAME=PROMQL",
        ),
    ] = None,
) -> None:
    """
    Serve POST /autoscaling: the desired number of instances of a TiDB cluster, from PD and Prometheus.

    Missing, stale or partial metrics never cause scale-in. With too few metrics the answer is an error, not an
    empty plan.

    \b
    Examples:
      plimsoll tidb planner --listen :9092 --pd http://db-pd.prod:2379 --prometheus http://monitor:9090 --tc prod/db
      plimsoll tidb planner --listen :9092 --pd http://db-pd.prod:2379 --tc prod/db --window 30s --scrape-interval 10s
    """
    import asyncio
    from functools import partial

    from plimsoll.runtime.signals import run_until_signalled
    from plimsoll.tidb.planner.collector import CollectorSettings
    from plimsoll.tidb.prometheus.cpu import read_queries
    from plimsoll.web.client import AiohttpClient, check_base_url
    from plimsoll.web.serving import check_address

    settings = CollectorSettings(
        base=_parse_cluster(tc),
        prometheus=check_base_url(prometheus, path="--prometheus") if prometheus else "",
        window_s=_parse_window_s(window),
        scrape_interval_s=_parse_duration_s(scrape_interval, path="--scrape-interval"),
        queries=read_queries(_parse_queries(query or [])),
    )
    if settings.window_s < _INTERVALS_IN_A_WINDOW * settings.scrape_interval_s:
        warning = f"--window {window} is shorter than two scrapes, one per {scrape_interval}: usage may be unknown"
        typer.echo(f"warning: {warning}", err=True)
    base, fixed = check_base_url(pd, path="--pd"), read_time(time, path="--time") if time else None
    token = read_token(pd_token_file, base, settings.prometheus)
    check_address(listen, example="--listen=:8086")
    log_events_to_stderr()
    web = partial(AiohttpClient, token=token)
    serving = _serve(settings, web, pd=base, listen=listen, fixed=fixed, falls_back=fallback_heterogeneous)
    if asyncio.run(run_until_signalled(serving)) is not None:
        typer.echo("stopped", err=True)


async def _serve(
    settings: CollectorSettings,
    make_web: Callable[[], AiohttpClient],
    *,
    pd: str,
    listen: str,
    fixed: datetime | None,
    falls_back: bool,
) -> None:
    """Serve until cancelled. The HTTP client is created here because it belongs to the running loop."""
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.tidb.pd.client import PdClient
    from plimsoll.tidb.planner.collector import Collector
    from plimsoll.tidb.planner.service import PlannerService
    from plimsoll.web.serving import serve

    clock = RealClock()
    async with make_web() as web:
        collector = Collector(settings, pd=PdClient(pd, web=web), web=web)
        now = clock.now if fixed is None else lambda: fixed
        service = PlannerService(collector, now=now, falls_back=falls_back)
        typer.echo(f"planning {settings.base.namespace}/{settings.base.name} on {listen}; Ctrl-C stops it", err=True)
        await serve(service, listen)


# ---- options


def _parse_cluster(written: str) -> BaseCluster:
    from plimsoll.tidb.pd.members import BaseCluster

    namespace, _, name = written.partition("/")
    if not namespace or not name or "/" in name:
        raise InvalidInput(f"{written!r} is not NAMESPACE/NAME", path="--tc")
    return BaseCluster(namespace=namespace, name=name)


def _parse_duration_s(written: str, *, path: str) -> float:
    from plimsoll.core.value_parsing import read_duration_s

    seconds = read_duration_s(written)
    if not seconds:
        raise InvalidInput(f"{written!r} is not a duration such as 15s or 1m", path=path)
    return seconds


def _parse_window_s(written: str) -> int:
    """The window in whole seconds, as queries need it."""
    seconds = _parse_duration_s(written, path="--window")
    if seconds != int(seconds):
        raise InvalidInput(f"{written!r} is not a whole number of seconds", path="--window")
    return int(seconds)


def _parse_queries(written: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in written]
    for name, separator, _ in pairs:
        if not separator:
            raise InvalidInput(f"{name!r} is not NAME=PROMQL", path="--query")
    return {name.strip(): text for name, _, text in pairs}
