"""`plimsoll whatif`: what the node autoscaler would do under several policies, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared.output import FilesOption, Output, OutputOption, Table, echo_parts, echo_value, read_file
from plimsoll.cli.shared.slow_notice import SlowNotice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.simulation.whatif import PolicyOutcome

_NAMED_TYPES: Final = 4
_NAMED_REASONS: Final = 3


def whatif(
    *,
    filenames: FilesOption,
    policies: Annotated[
        list[str], typer.Option("--policy", help="File with flags of the node autoscaler; repeatable.", metavar="FILE")
    ],
    catalogue: Annotated[
        list[str] | None,
        typer.Option(
            "--catalogue",
            help="Machine types: a shipped catalogue or a file; may be repeated.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    repack: Annotated[
        bool, typer.Option("--repack", help="Place all pods anew, as if the cluster had no nodes.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Compare policies on the same cluster and pods, from a scenario file or the output of kubectl get.

    A policy is a YAML mapping of flags of plimsoll run nodes, such as expander: least-waste. Nothing is changed.
    Exit code 0: all were planned, even if pods remain unschedulable. 2: a file cannot be used.

    \b
    Examples:
      plimsoll whatif -f dump.yaml --policy a.yaml --policy b.yaml
      plimsoll whatif -f examples/plans/mixed.yaml --policy examples/plans/policies/cost.yaml -o json
      kubectl get nodes,pods,ds -A -o json | plimsoll whatif -f - --catalogue gce-n1 --repack --policy a.yaml
    """
    from plimsoll.simulation.whatif import compare_policies, read_policy

    named = [read_policy(name, read_file(name)) for name in policies]
    files = [(name, read_file(name)) for name in filenames]
    with SlowNotice(f"planning {len(named)} policies", is_silent=output in {Output.JSON, Output.YAML}):
        outcomes = compare_policies(files, named, catalogues=catalogue or (), repacks=repack, read_file=read_file)
    if output is Output.TABLE:
        echo_parts(_format_outcomes(outcomes))
    elif output is Output.NAME:
        for outcome in outcomes:
            typer.echo(outcome.name)
    else:
        echo_value({"policies": [_build_document(outcome) for outcome in outcomes]}, output)


def _format_outcomes(outcomes: Sequence[PolicyOutcome]) -> Iterator[str | Table]:
    from plimsoll.core.formatting import format_money

    rows = [
        (
            outcome.name,
            outcome.nodes,
            _format_types(outcome),
            format_money(outcome.cost_per_hour, outcome.currency),
            format_money(outcome.lower_bound_per_hour, outcome.currency),
            outcome.placed,
            outcome.unschedulable,
        )
        for outcome in outcomes
    ]
    yield Table(("POLICY", "NODES ADDED", "MACHINE TYPES", "PER HOUR", "BOUND", "PLACED", "UNSCHEDULABLE"), rows)
    for outcome in outcomes:
        for reason in outcome.reasons[:_NAMED_REASONS]:
            yield f"{outcome.name}: unschedulable: {reason}"
    if len(outcomes) > 1:
        yield _compare_costs(outcomes)


def _compare_costs(outcomes: Sequence[PolicyOutcome]) -> str:
    """The cheapest of those that place the most pods."""
    from plimsoll.core.formatting import format_money

    most = max(outcome.placed for outcome in outcomes)
    able = [outcome for outcome in outcomes if outcome.placed == most]
    cheapest = min(able, key=lambda outcome: outcome.cost_per_hour)
    costliest = max(able, key=lambda outcome: outcome.cost_per_hour)
    less = costliest.cost_per_hour - cheapest.cost_per_hour
    if not less:
        return f"{len(able)} of {len(outcomes)} policies place the most pods, and cost the same"
    return (
        f"{cheapest.name} costs {format_money(less, cheapest.currency)} per hour less than {costliest.name} "
        f"for the same number of pods"
    )


def _format_types(outcome: PolicyOutcome) -> str:
    named = sorted(outcome.machine_types.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = ", ".join(f"{count} {name}" for name, count in named[:_NAMED_TYPES])
    return f"{shown}, ..." if len(named) > _NAMED_TYPES else shown or "-"


def _build_document(outcome: PolicyOutcome) -> dict[str, object]:
    return {
        "policy": outcome.name,
        "nodesAdded": outcome.nodes,
        "machineTypes": dict(outcome.machine_types),
        "costPerHour": round(outcome.cost_per_hour, 9),
        "lowerBoundPerHour": round(outcome.lower_bound_per_hour, 9),
        "currency": outcome.currency,
        "podsPlaced": outcome.placed,
        "podsUnschedulable": outcome.unschedulable,
        "reasons": list(outcome.reasons),
    }
