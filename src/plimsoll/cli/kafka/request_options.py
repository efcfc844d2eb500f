"""Options that say what is planned, declared once for `plan` and `rebalance`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared.option_groups import takes_options
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.kafka.model.requests import BrokerLogDir, RebalanceRequest

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
    mode: ModeOption = "full",
    brokers: BrokersOption = "",
    goals: GoalsOption = "",
    skip_hard_goal_check: SkipCheckOption = False,
    excluded_topics: ExcludedOption = "",
    destination_brokers: DestinationsOption = "",
    log_dirs: LogDirsOption = "",
    rebalance_disk: DiskOption = False,
    relief: ReliefOption = None,
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


takes_request: Final = takes_options("request", build_request)


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
