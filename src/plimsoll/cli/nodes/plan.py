"""`plimsoll plan`: plans nodes for pending pods from files, with cost and explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from plimsoll.cli.nodes.pending_names import find_pending_key
from plimsoll.cli.shared.output import FilesOption, Output, OutputOption, echo_parts, echo_value, read_file
from plimsoll.cli.shared.slow_notice import SlowNotice
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.prices import Overlay
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.requests.check_queue import CheckResult
    from plimsoll.nodes.planning.scaleup.planner import Proposal
    from plimsoll.nodes.planning.scaleup.price_of_rules import RulePrices
    from plimsoll.simulation.plan.inputs import PlanInput

_WORTH_LOADING: Final = 2_000
"""Pending entries times node kinds: below it, plain Python is faster than loading compiled kernels."""
_WORTH_LOADING_FOR_MANY: Final = 200
"""The same for very many pods, which fill nodes in thousands of ways."""
_MANY_PODS: Final = 10_000


def plan(
    *,
    filenames: FilesOption,
    output: OutputOption = Output.TABLE,
    expander: Annotated[
        str, typer.Option("--expander", help="Expander chain: cost, least-waste, priority,cost, ...", metavar="CHAIN")
    ] = "",
    catalogue: Annotated[
        list[str] | None,
        typer.Option(
            "--catalogue",
            help="Machine types: a shipped catalogue or a file; may be repeated.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    prove: Annotated[bool, typer.Option("--prove", help="Search longer for a better plan and lower bound.")] = False,
    explain: Annotated[
        str,
        typer.Option("--explain", help="Explain for one pod what fits and what does not.", metavar="[NAMESPACE/]NAME"),
    ] = "",
    price_of_rules: Annotated[
        bool,
        typer.Option(
            "--price-of-rules", help="Add what each rule between pods costs: the plan is made again without it."
        ),
    ] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Add the planning time.")] = False,
) -> None:
    """
    Plan nodes for pending pods, from a scenario file or the output of kubectl get. Nothing is changed.

    Several files are combined: a kubectl dump, and node groups and machine types in another file or from a catalogue.
    Objects missing in the dump (daemon sets, volumes, budgets) are not considered. Exit code 0: a plan was made, even
    if pods remain unschedulable. 2: the input cannot be used.

    \b
    Examples:
      plimsoll plan -f examples/plans/mixed.yaml
      plimsoll plan -f examples/plans/zones.yaml -o json --timing
      plimsoll plan -f examples/plans/zones.yaml --price-of-rules
      plimsoll plan -f examples/plans/gpu.yaml --explain default/training
      kubectl get nodes,pods,ds,pv,pvc,sc,pdb -A -o json | plimsoll plan -f - --catalogue gce-n1
      kubectl get nodes,pods,ds -A -o json | plimsoll plan -f - -f groups.yaml --expander least-waste
    """
    from plimsoll.nodes.planning.scaleup.planner import verify_proposal
    from plimsoll.simulation.plan.inputs import read_plan_input

    files = [(name, read_file(name)) for name in filenames]
    given = read_plan_input(files, catalogues=catalogue or ())
    for warning in given.warnings:
        typer.echo(f"warning: {warning}", err=True)
    policy = _read_policy(given, expander, makes_groups=bool(catalogue))
    wanted = find_pending_key(given, explain) if explain else ""
    with SlowNotice(_describe_work(given), is_silent=output in {Output.JSON, Output.YAML}):
        planned = _build_plan(given, policy, prove=prove)
        answer = verify_proposal(planned.proposal)
        prices = _price_rules(planned, policy, answer) if price_of_rules else None
    if wanted:
        _explain(planned.proposal, answer, wanted, output, given.currency)
    elif output is Output.TABLE:
        from plimsoll.cli.nodes.plan_tables import format_plan, format_requests, format_rule_prices

        answers = _build_request_answers(given, answer, planned.checks, policy)
        rules = () if prices is None else format_rule_prices(prices, given.currency)
        lines = (*format_plan(given, policy, answer), *format_requests(answers), *rules)
        echo_parts(lines)
        if timing:
            typer.echo(f"planned in {planned.seconds * 1000:.1f} ms")
    elif output is Output.NAME:
        for scale_up in answer.scale_ups:
            typer.echo(f"nodegroup/{scale_up.option.group}")
    else:
        answers = _build_request_answers(given, answer, planned.checks, policy)
        document = _build_document(given, answer, answers, seconds=planned.seconds if timing else None)
        echo_value(document if prices is None else {**document, "rules": _encode_prices(prices)}, output)


def _price_rules(planned: _TimedPlan, policy: Policy, answer: ScaleUpPlan) -> RulePrices:
    from plimsoll.nodes.planning.scaleup.price_of_rules import price_rules

    return price_rules(planned.proposal.problem.snapshot, policy, answer, effort=planned.proposal.effort)


def _encode_prices(prices: RulePrices) -> list[dict[str, Any]]:
    return [
        {
            "rule": str(entry.rule),
            "kind": entry.rule.kind,
            "topologyKey": entry.rule.key,
            "selector": entry.rule.selector,
            "namespace": entry.rule.namespace,
            "pods": entry.pods,
            "costPerHour": entry.cost_per_hour,
            "nodes": entry.nodes,
            "unschedulableBecauseOfIt": entry.more_placed,
        }
        for entry in prices.priced
    ]


def _describe_work(given: PlanInput) -> str:
    snapshot = given.snapshot
    pods = sum(pending.count for pending in snapshot.pending)
    return f"planning {pods} pods, {len(snapshot.view.nodes)} nodes, {len(snapshot.machine_types)} machine types"


def _read_policy(given: PlanInput, expander: str, *, makes_groups: bool) -> Policy:
    """The policy from files and command line. A catalogue without node groups turns on auto-provisioning."""
    from dataclasses import replace

    from plimsoll.nodes.config.options import read_options

    if expander:
        _check_expander(expander)
    options = {**given.options, **({"expander": expander} if expander else {})}
    if makes_groups and not given.snapshot.groups:
        options.setdefault("node-autoprovisioning", True)
    policy = read_options(options)
    overlay = _read_overlay(policy.planning.price_overlay)
    return replace(policy, priorities=given.priorities, overlay=overlay)


def _check_expander(chain: str) -> None:
    """Report an invalid value as a command-line error, not as an error of a file."""
    from plimsoll.nodes.config.flags import find_flag_problem
    from plimsoll.nodes.config.options import FLAGS

    problem = find_flag_problem(FLAGS["expander"], chain)
    if problem is not None:
        raise InvalidInput(problem, path="--expander")


def _read_overlay(filename: str) -> dict[str, Overlay]:
    from plimsoll.nodes.config.price_overlays import decode_overlay_file

    return decode_overlay_file(read_file(filename), source=filename) if filename else {}


class _TimedPlan(NamedTuple):
    """A plan before verification, the answers to capacity checks, and the planning time."""

    proposal: Proposal
    checks: Mapping[str, CheckResult]
    seconds: float


def _build_plan(given: PlanInput, policy: Policy, *, prove: bool) -> _TimedPlan:
    """Only planning is timed: imports, loading and compilation come before, verification after."""
    import time

    from plimsoll.nodes.planning.scaleup.planner import propose
    from plimsoll.nodes.requests.booking.booking import BookingHints, answer_checks, book
    from plimsoll.solver.problem import Effort

    effort = Effort(gap=0.0, rounds=400, branch_nodes=100_000, simplex_iterations=200_000) if prove else None
    with _choose_kernels(given, prove=prove):
        propose(_build_single_pod_snapshot(given), policy, effort=effort)
        began_s = time.perf_counter()
        snapshot = book(given.snapshot, given.held, BookingHints(), policy).snapshot
        snapshot, checks = answer_checks(snapshot, given.requests, policy)
        proposal = propose(snapshot, policy, effort=effort)
        return _TimedPlan(proposal, checks, round(time.perf_counter() - began_s, 6))


def _choose_kernels(given: PlanInput, *, prove: bool) -> AbstractContextManager[None]:
    """Machine code for large questions, if it lies ready; small ones are answered before it would be loaded.

    Compiling takes longer than a single plan; it pays off before many plans.
    """
    import os
    from contextlib import nullcontext

    from plimsoll.solver import kernels

    snapshot = given.snapshot
    nodes = len(snapshot.view.nodes) + len(snapshot.groups) + len(snapshot.machine_types)
    if os.environ.get(kernels.VARIABLE):
        return nullcontext()
    size = len(snapshot.pending) * nodes
    many = size >= _WORTH_LOADING_FOR_MANY and sum(pending.count for pending in snapshot.pending) >= _MANY_PODS
    if size < _WORTH_LOADING and not ((prove or many) and kernels.is_cache_warm()):
        return kernels.force_choice("plain")
    if not kernels.is_cache_warm():
        typer.echo(f"note: python -m {kernels.__name__} (a minute, once on this machine) makes plans faster", err=True)
    return nullcontext()


def _build_single_pod_snapshot(given: PlanInput) -> Snapshot:
    """The same input for one pod: planning it imports everything."""
    from dataclasses import replace

    pending = tuple(replace(pending_pods, count=1) for pending_pods in given.snapshot.pending[:1])
    return replace(given.snapshot, pending=pending)


# ---- output


def _build_document(
    given: PlanInput, answer: ScaleUpPlan, answers: Mapping[str, Any], *, seconds: float | None
) -> dict[str, Any]:
    from plimsoll.nodes.reporting.plan_json import encode_plan
    from plimsoll.objects.api.meta import format_time

    document: dict[str, Any] = {
        "time": format_time(given.snapshot.at),
        "scaleUp": encode_plan(answer, plan_seconds=seconds),
    }
    if answers:
        document["requests"] = answers
    return document


def _build_request_answers(
    given: PlanInput, answer: ScaleUpPlan, checks: Mapping[str, CheckResult], policy: Policy
) -> Mapping[str, Any]:
    """Answers by NAMESPACE/NAME, in queue order."""
    if not given.requests:
        return {}
    from plimsoll.nodes.requests.views import PlanUpdates

    answers = PlanUpdates(answer, given.snapshot.pending, policy=policy, at=given.snapshot.at)
    return answers.to_json(given.requests, checks)


# ---- explanations


def _explain(proposal: Proposal, answer: ScaleUpPlan, key: str, output: Output, currency: str) -> None:
    from plimsoll.cli.nodes.plan_tables import format_explanation
    from plimsoll.nodes.planning.explain.pod import explain_pod

    found = explain_pod(proposal.problem, answer, key)
    if output in {Output.JSON, Output.YAML}:
        echo_value(found, output)
    elif output is Output.NAME:
        fitting = (option["group"] for option in found.get("offers", ()) if option["fits"])
        for group in fitting:
            typer.echo(f"nodegroup/{group}")
    else:
        echo_parts(format_explanation(found, currency))
