"""`plimsoll fleet export` and `import`: the rows of a fleet as a document, and back."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.fleet.databases import (
    DEFAULT_URL,
    DatabaseUrlFileOption,
    DatabaseUrlOption,
    find_database_url,
    read_database_url,
)
from plimsoll.cli.fleet.evaluate import refuse_mistakes
from plimsoll.cli.fleet.validate_config import ScalingTypeOption
from plimsoll.cli.shared.output import Output, echo_value, read_file

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.kafkas import KafkaRequest


_DEFAULT_DIRECTORY = "config"


class DocumentOutput(Enum):
    """A document has two forms."""

    JSON = "json"
    YAML = "yaml"


def export_rows(
    *,
    database_url: DatabaseUrlOption = "",
    database_url_file: DatabaseUrlFileOption = "",
    config_dir: Annotated[
        str,
        typer.Option("--config-dir", help="Directory of configuration files to export with the rows.", metavar="DIR"),
    ] = _DEFAULT_DIRECTORY,
    scaling_type: Annotated[
        ScalingTypeOption,
        typer.Option("--dataplane-cluster-scaling-type", help="How clusters come and go; with --config-dir."),
    ] = ScalingTypeOption.AUTO,
    secrets_key_file: Annotated[
        str,
        typer.Option(
            "--secrets-key-file",
            help="File with the keys of stored secrets: exports secrets too, readable for everyone.",
            metavar="FILE",
        ),
    ] = "",
    output: Annotated[
        DocumentOutput, typer.Option("-o", "--output", help="Form of the document.")
    ] = DocumentOutput.YAML,
) -> None:
    """
    Export the rows of a fleet of one moment, in the format of `plimsoll fleet evaluate`.

    The document has the configuration too, which evaluate needs, unless there is no directory of that name. The
    database may be in use, and nothing in it is changed. Secrets are exported only with --secrets-key-file: without
    them the agents of moved clusters get no tokens.

    \b
    Examples:
      plimsoll fleet export | plimsoll fleet evaluate -f -
      plimsoll fleet export --config-dir /etc/fleet/config > fleet.yaml
      plimsoll fleet export --database-url-file /etc/fleet/database -o json
      plimsoll fleet export --secrets-key-file .plimsoll/fleet-secrets.keys | plimsoll fleet import -f - \\
        --database-url-file /etc/fleet/database --secrets-key-file /etc/fleet/keys
    """
    import asyncio

    from plimsoll.fleet.store.database import open_database
    from plimsoll.fleet.store.secrets import read_key_file
    from plimsoll.fleet.wire.fleet_document import write_rows
    from plimsoll.runtime.clocks import RealClock

    clock = RealClock()
    document: dict[str, Any] = {"now": _format_time(clock.now())}
    if config_dir == _DEFAULT_DIRECTORY and not Path(config_dir).exists():
        typer.echo(f"warning: there is no directory {config_dir}: the document has no configuration", err=True)
    else:
        document["configuration"] = _read_configuration(config_dir, scaling_type)
    url = read_database_url(database_url, database_url_file)
    keys = read_key_file(Path(secrets_key_file)) if secrets_key_file else None
    database = open_database(url, clock=clock, keys=keys, reads_only=True)
    try:
        clusters, kafkas = asyncio.run(database.transfer.export_rows(with_secrets=keys is not None))
    finally:
        database.close()
    echo_value(document | write_rows(clusters, kafkas, with_secrets=keys is not None), Output(output.value))


def import_rows(
    *,
    filename: Annotated[str, typer.Option("-f", "--filename", help="Document with rows; - is stdin.", metavar="FILE")],
    database_url: DatabaseUrlOption = "",
    database_url_file: DatabaseUrlFileOption = "",
    secrets_key_file: Annotated[
        str,
        typer.Option(
            "--secrets-key-file",
            help="File with the keys of stored secrets; needed if rows have any. Default: beside the default database.",
            metavar="FILE",
        ),
    ] = "",
    merge: Annotated[bool, typer.Option("--merge", help="Add to the rows that the database has.")] = False,
) -> None:
    """
    Import rows into the database of a fleet: all of them, or none.

    The document is that of `plimsoll fleet export` and `evaluate`; its configuration is not imported. Every mistake is
    one line on stderr. A database that has rows already is refused without --merge.

    \b
    Examples:
      plimsoll fleet export | plimsoll fleet import -f - --database-url postgresql://fleet@db/fleet
      plimsoll fleet import -f fleet.yaml
    """
    import asyncio

    from plimsoll.core.formatting import format_count
    from plimsoll.fleet.store.database import open_database
    from plimsoll.fleet.store.secrets import read_key_file
    from plimsoll.runtime.clocks import RealClock

    clock = RealClock()
    clusters, kafkas = _read_rows(filename, clock.now())
    is_default = not find_database_url(database_url, database_url_file)
    keys = read_key_file(_find_key_file(secrets_key_file)) if secrets_key_file or is_default else None
    database = open_database(read_database_url(database_url, database_url_file), clock=clock, keys=keys)
    try:
        asyncio.run(database.transfer.import_rows(clusters, kafkas, merge=merge))
    finally:
        database.close()
    imported = f"{format_count(len(clusters), 'cluster')} and {format_count(len(kafkas), 'Kafka')}"
    typer.echo(f"imported {imported} into {database.address}")


def _find_key_file(given: str) -> Path:
    """The file that was given, or the one that `run fleet` uses for the default database."""
    from plimsoll.app.fleet.process import SECRETS_FILE
    from plimsoll.fleet.store.secrets import create_key_file

    if given:
        return Path(given)
    file = Path(DEFAULT_URL.removeprefix("sqlite:///")).with_name(SECRETS_FILE)
    create_key_file(file, "1")
    return file


def _read_configuration(directory: str, scaling_type: ScalingTypeOption) -> dict[str, Any]:
    """The documents of the files that evaluate reads, after the same checks as those of the fleet manager."""
    from plimsoll.fleet.config import policy_documents
    from plimsoll.fleet.config.files import FleetFiles, read_configuration
    from plimsoll.fleet.model.statuses import ScalingType
    from plimsoll.objects.codec.yaml import load_first

    files = FleetFiles(scaling_type=ScalingType(scaling_type.value), directory=directory)
    read_configuration(files)
    configuration: dict[str, Any] = {"scaling_type": scaling_type.value}
    for key in (
        policy_documents.DYNAMIC_SCALING,
        policy_documents.NODE_PREWARMING,
        policy_documents.PROVIDERS,
        policy_documents.INSTANCE_TYPES,
        policy_documents.MANUAL_CLUSTERS,
    ):
        path = Path(files.get_path(key))
        if key in files.list_used() and path.exists():
            configuration[key] = load_first(path.read_text(encoding="utf-8"))
    return configuration


def _read_rows(name: str, now: datetime) -> tuple[tuple[Cluster, ...], tuple[KafkaRequest, ...]]:
    from plimsoll.core.errors import UnreadableDocument
    from plimsoll.fleet.config.strict import Mistake
    from plimsoll.fleet.wire.fleet_document import MOST_LISTED, read_rows
    from plimsoll.objects.codec.yaml import load_first

    try:
        document = load_first(read_file(name).decode("utf-8"))
    except (UnreadableDocument, UnicodeDecodeError) as error:
        refuse_mistakes([Mistake(name, f"is not YAML or JSON: {error}")])
    found = read_rows(document, now)
    if isinstance(found, list):
        refuse_mistakes(found)
    clusters, groups = found
    total = sum(group.count for group in groups)
    if total > MOST_LISTED:
        refuse_mistakes([Mistake("kafkas", f"stand for {total} rows, and the most is {MOST_LISTED}")])
    return clusters, tuple(kafka for group in groups for kafka in group.list_kafkas())


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
