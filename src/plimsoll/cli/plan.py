"""`plimsoll plan`: what would be added for these pods, what it costs, and why some stay where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from plimsoll.cli.output import FilesOption, Output, OutputOption, echo_value, read_file, table
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.nodes.planning.results import ScaleUp
    from plimsoll.nodes.planning.scale_up import Proposal
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.nodes.policy import Policy
    from plimsoll.simulation.plan_inputs import PlanInput

_SHOWN: Final = 10
_WORTH_COMPILING: Final = 2_000
"""Entries times kinds of nodes: below it plain Python is done before machine code would be loaded."""


def plan(
    *,
    filenames: FilesOption,
    output: OutputOption = Output.TABLE,
    expander: Annotated[
        str, typer.Option("--expander", help="How to choose: cost, least-waste, priority,cost, ...", metavar="CHAIN")
    ] = "",
    catalogue: Annotated[
        str, typer.Option("--catalogue", help="Machine types: a shipped catalogue's name, or a file.", metavar="FILE")
    ] = "",
    prove: Annotated[bool, typer.Option("--prove", help="Spend much more effort on the plan and its bound.")] = False,
    explain: Annotated[
        str, typer.Option("--explain", help="Say for one pod what stood in its way, type by type.", metavar="NS/POD")
    ] = "",
    timing: Annotated[bool, typer.Option("--timing", help="Add the seconds that planning took.")] = False,
) -> None:
    """
    Plan nodes for pending pods: from a scenario file, or from what kubectl get printed. Nothing is changed anywhere.

    Files are taken together: nodes and pods from `kubectl get nodes,pods -A -o json`, machine types and node groups
    from a file of their own or a catalogue. Exit 0 also when pods remain, 2 for input that cannot be used.

    \b
    Examples:
      plimsoll plan -f examples/plans/mixed.yaml
      plimsoll plan -f mixed.yaml -o json --timing
      kubectl get nodes,pods -A -o json | plimsoll plan -f - -f groups.yaml --catalogue gce-n1
      plimsoll plan -f mixed.yaml --explain default/gpu-0
    """
    from plimsoll.nodes.planning.scale_up import verified
    from plimsoll.simulation.plan_inputs import read_plan_input

    files = [(name, read_file(name)) for name in filenames]
    given = read_plan_input(files, catalogue=catalogue)
    for problem in given.problems:
        typer.echo(f"warning: {problem}; nothing is placed beside it", err=True)
    policy = _policy(given, expander)
    if explain:
        _explain(given, policy, explain, output)
        return
    proposal, seconds = _timed_proposal(given, policy, prove=prove)
    answer = verified(proposal)
    if output is Output.TABLE:
        for line in _lines(given, answer, seconds if timing else None):
            typer.echo(line)
    elif output is Output.NAME:
        for growth in answer.growths:
            typer.echo(f"nodegroup/{growth.offer.group}")
    else:
        echo_value(_document(given, answer, seconds if timing else None), output)


def _policy(given: PlanInput, expander: str) -> Policy:
    from dataclasses import replace

    from plimsoll.nodes.options import read_options

    options = {**given.options, **({"expander": expander} if expander else {})}
    policy = read_options(options, path="--expander" if expander and "expander" not in given.options else "options")
    overlay = _overlay(policy.choosing.price_overlay)
    return replace(policy, priorities=given.priorities, overlay=overlay)


def _overlay(filename: str) -> Any:
    from plimsoll.nodes.planning.prices import read_overlay
    from plimsoll.objects.manifests import read_documents

    if not filename:
        return {}
    documents = [document for _, document in read_documents(read_file(filename), source=filename)]
    return read_overlay(documents[0] if documents else {}, path=filename)


def _timed_proposal(given: PlanInput, policy: Policy, *, prove: bool) -> tuple[Proposal, float]:
    """Only planning is timed: what has to be imported, loaded or compiled is so before, and nothing is verified yet."""
    import time

    from plimsoll.nodes.planning.scale_up import propose
    from plimsoll.solver.problems import Effort

    effort = Effort(gap=0.0, rounds=400, branch_nodes=100_000) if prove else None
    _get_kernels_ready(given)
    propose(_small(given), policy, effort=effort)
    began_s = time.perf_counter()
    proposal = propose(given.snapshot, policy, effort=effort)
    return proposal, round(time.perf_counter() - began_s, 6)


def _get_kernels_ready(given: PlanInput) -> None:
    """Machine code for large questions; small ones are answered before it would be loaded."""
    from plimsoll.solver import kernels

    snapshot = given.snapshot
    nodes = len(snapshot.view.nodes) + len(snapshot.groups) + len(snapshot.machine_types)
    if len(snapshot.pending) * nodes < _WORTH_COMPILING:
        return
    if not kernels.cache_is_warm():
        typer.echo("compiling the planner's kernels, once on this machine (under a minute)", err=True)
    kernels.compile_all()


def _small(given: PlanInput) -> Snapshot:
    """The same question for one pod: who answers it has imported everything."""
    from dataclasses import replace

    pending = tuple(replace(one, count=1) for one in given.snapshot.pending[:1])
    return replace(given.snapshot, pending=pending)


# ---- answers


def _document(given: PlanInput, answer: ScaleUp, seconds: float | None) -> dict[str, Any]:
    from plimsoll.nodes.plan_outputs import requests_json, scale_up_json
    from plimsoll.objects.meta import written_time

    snapshot = given.snapshot
    time = written_time(snapshot.at)
    document: dict[str, Any] = {"time": time, "scaleUp": scale_up_json(answer, plan_seconds=seconds)}
    if given.requests:
        bundles = [f"{one.metadata.namespace}/{one.metadata.name}" for one in given.requests]
        document["requests"] = requests_json(answer, snapshot.pending, bundles, time=time)
    return document


def _lines(given: PlanInput, answer: ScaleUp, seconds: float | None) -> Iterator[str]:
    """What is added, what it costs, who is left."""
    rows = [
        (
            growth.offer.group,
            growth.offer.machine_type or "-",
            growth.offer.zone or "-",
            f"{growth.before} -> {growth.after}" + (" (new)" if not growth.offer.exists else ""),
            sum(pattern.nodes * sum(pattern.pods.values()) for pattern in growth.patterns),
            f"{growth.added * growth.offer.price_per_hour:.4f}",
        )
        for growth in answer.growths
    ]
    yield from table(("NODE GROUP", "MACHINE TYPE", "ZONE", "NODES", "PODS", "PER HOUR"), rows)
    waiting = sum(one.count for one in given.snapshot.pending)
    on_existing = sum(sum(pods.values()) for pods in answer.existing.values())
    yield f"{answer.helped} of {waiting} pods get a place, {on_existing} of them on nodes that are there"
    yield _money(answer)
    for one in answer.remaining:
        yield f"{one.pods} left ({_few([*one.keys])}):"
        yield from (f"  {reason}" for reason in one.reasons)
    if seconds is not None:
        yield f"planned in {seconds * 1000:.1f} ms"


def _money(answer: ScaleUp) -> str:
    cost, bound = answer.cost_per_hour, answer.lower_bound_per_hour
    if not cost:
        return "nothing is added"
    gap = f", at most {100 * (cost / bound - 1):.2f} % above the least possible" if bound else ""
    return f"costs {cost:.4f} an hour{gap}"


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


# ---- why not


def _explain(given: PlanInput, policy: Policy, wanted: str, output: Output) -> None:
    """Node by node and offer by offer everything that stands in a pod's way; nothing where it fits."""
    from plimsoll.nodes.planning.explaining import explained

    found = explained(given.snapshot, policy, _key_of(given, wanted))
    if output in {Output.JSON, Output.YAML}:
        echo_value(found, output)
        return
    for line in _explanation(found):
        typer.echo(line)


def _explanation(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['key']}: asks for {found['asks']}"
    if found["problem"]:
        yield f"no node can take it: {found['problem']}"
        return
    rows = [
        (one["group"] or "-", one["machineType"] or "-", one["zone"] or "-", _verdict(one)) for one in found["offers"]
    ]
    yield from table(("NODE GROUP", "MACHINE TYPE", "ZONE", "VERDICT"), rows)
    if found["nodes"]["total"]:
        yield found["nodes"]["message"]
    for one in found["notOffered"]:
        yield f"not offered: {one['group'] or one['machineType'] or 'new groups'}: {one['reason']}"


def _verdict(one: dict[str, Any]) -> str:
    return "fits" if one["fits"] else "; ".join(one["reasons"])


def _key_of(given: PlanInput, wanted: str) -> str:
    """A pod by its own name, or by the entry it comes from: default/web-3 is one of default/web."""
    name = wanted if "/" in wanted else f"default/{wanted}"
    keys = {one.key for one in given.snapshot.pending}
    if name in keys:
        return name
    entry, _, number = name.rpartition("-")
    if entry in keys and number.isdigit():
        return entry
    raise InvalidInput(f"no pending pod is called {name}; there are {_few(sorted(keys)) or 'none'}", path="--explain")
