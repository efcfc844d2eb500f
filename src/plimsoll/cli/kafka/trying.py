"""`plimsoll kafka try`: a Kafka cluster of real brokers that the operator scales, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared.logs import log_sentences_to_stderr
from plimsoll.cli.shared.slow_notice import SlowNotice

if TYPE_CHECKING:
    from plimsoll.app.kafka.trying import TrySettings, TryStatus

DEFAULT_DATA: Final = Path(".plimsoll-kafka")
_MOST_BROKERS: Final = 20
_FIRST_SCREEN = """\
ready at {url}

This machine runs {brokers} of Kafka {version}, with the operator and its engine.
Topics orders and payments hold some data. Files and logs are in {data}.

Try it in another terminal:

  export KUBECONFIG={kubeconfig}
  kubectl get kafkanodepool,pods -n kafka
  kubectl scale kafkanodepool/brokers -n kafka --replicas={more}
  plimsoll kafka status
  plimsoll why kafka/kafka/my-cluster --data {quoted_data}
  plimsoll kafka status --bootstrap {bootstrap}{login}
  kubectl scale kafkanodepool/brokers -n kafka --replicas={same}

docs/kafka-try.md says what one sees. Ctrl-C stops it.
"""


def try_kafka(
    *,
    brokers: Annotated[
        int, typer.Option("--brokers", help="Brokers of a new cluster.", min=1, max=_MOST_BROKERS, metavar="NUMBER")
    ] = 3,
    combined: Annotated[
        bool, typer.Option("--combined", help="The brokers of a new cluster are its controllers, too.")
    ] = False,
    tls: Annotated[
        bool, typer.Option("--tls", help="A new cluster has TLS everywhere, and clients log in with SCRAM-SHA-512.")
    ] = False,
    data: Annotated[
        Path, typer.Option("--data", help="Directory for all data; created if missing.", metavar="DIR")
    ] = DEFAULT_DATA,
    port: Annotated[
        int, typer.Option("--port", help="Port of the Kubernetes API; 0 selects a free one.", min=0, max=65_535)
    ] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the cluster of an earlier run.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more on stderr.")] = False,
) -> None:
    """
    Run real Kafka brokers on this machine with the API server and the operator, to scale them, until Ctrl-C.

    Needs Java 17 and, the first time, Maven: it fetches Kafka into the user's cache directory. The cluster is kept in
    --data and used at the next start. Each broker takes about 300 MB of memory.

    Exit code 2: something is missing on this machine, and the message names it.

    \b
    Examples:
      plimsoll kafka try
      plimsoll kafka try --brokers 4 --combined
      plimsoll kafka try --fresh --tls
    """
    from plimsoll.app.kafka.sample_cluster import SampleCluster
    from plimsoll.app.kafka.trying import TrySettings
    from plimsoll.core.errors import InvalidInput

    if not data.name or (data.exists() and not data.is_dir()):
        raise InvalidInput("must name a directory of its own, e.g. --data ./cluster", path="--data")
    log_sentences_to_stderr(is_verbose=verbose)
    cluster = SampleCluster(brokers=brokers, combined=combined, secure=tls)
    _run(TrySettings(data=data, cluster=cluster, port=port, fresh=fresh))


def _run(settings: TrySettings) -> None:
    import asyncio
    from contextlib import ExitStack

    from plimsoll.app.kafka.trying import run
    from plimsoll.local.kafka.processes.archive import ensure_archive
    from plimsoll.local.kafka.processes.distribution import find_distribution
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy
    from plimsoll.runtime.signals import run_until_signalled

    entropy = SystemEntropy()
    with SlowNotice("fetching Kafka, once"):
        distribution = find_distribution()
        ensure_archive(distribution, entropy=entropy)
    with ExitStack() as starting:
        starting.enter_context(SlowNotice("starting the brokers"))

        def print_first_screen(status: TryStatus) -> None:
            starting.close()
            typer.echo(format_first_screen(status), nl=False)

        running = run(settings, distribution, clock=RealClock(), entropy=entropy, on_ready=print_first_screen)
        if asyncio.run(run_until_signalled(running)) is not None:
            typer.echo("stopped", err=True)


def format_first_screen(status: TryStatus) -> str:
    """The first output: what runs, where, and what to try."""
    import shlex

    from plimsoll.local.kafka.processes.distribution import KAFKA_VERSION

    return _FIRST_SCREEN.format(
        url=status.url,
        version=KAFKA_VERSION,
        brokers=f"{status.brokers} brokers" if status.brokers > 1 else "1 broker",
        data=status.kubeconfig.parent,
        quoted_data=shlex.quote(str(status.kubeconfig.parent)),
        kubeconfig=shlex.quote(str(status.kubeconfig)),
        more=status.brokers + 1,
        same=status.brokers,
        bootstrap=status.bootstrap[0],
        login=f" --command-config {shlex.quote(str(status.client_properties))}" if status.client_properties else "",
    )
