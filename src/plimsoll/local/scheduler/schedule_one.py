"""The scheduling of one pod on the current cache. It never awaits and never changes anything.

The result is a node, or why there is none, in kube-scheduler's words. Nominated pods count as present for pods that do
not outrank them; a pod that is itself nominated tries its node first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.local.scheduler.equivalence import WIDE
from plimsoll.local.scheduler.queue.cluster_events import NO_NODE
from plimsoll.local.scheduler.scoring.preferences import choose_best_node, has_pod_preferences, is_spread_by_default
from plimsoll.scheduling.cluster_view import PlacedPod, get_pod_key
from plimsoll.scheduling.feasibility import prepare_pod
from plimsoll.scheduling.messages import NO_NODES, format_refused_everywhere, summarise_refusals, with_named_nodes_only
from plimsoll.scheduling.verdicts import FITS, DoesNotFit, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.local.scheduler.cache import SchedulerCache
    from plimsoll.local.scheduler.equivalence import PodClass, PodClasses
    from plimsoll.local.scheduler.scoring.scoring import NodeEvaluation
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState
    from plimsoll.scheduling.feasibility import Prepared


class ScheduleResult(Value, frozen=True):
    """The node the pod is to run on."""

    node: str


class FitError(Value, frozen=True):
    """No node fits. `answers` has the reasons of each node, ordered by name; empty if no node was evaluated."""

    message: str
    refused_by: frozenset[str]
    answers: dict[str, Verdict] = {}


def schedule_pod(
    pod: Pod, cache: SchedulerCache, classes: PodClasses, *, reserved: str = ""
) -> ScheduleResult | FitError:
    """`reserved` is a node chosen before, for which volumes are being bound: it is kept if it still fits."""
    view = cache.view
    if not view.nodes:
        return FitError(message=NO_NODES, refused_by=frozenset({NO_NODE}))
    pod_class = classes.find_class(pod)
    wide = prepare_pod(pod, view, profile=WIDE)
    everywhere = (*pod_class.rules.everywhere, *wide.everywhere)
    if everywhere:
        text = format_refused_everywhere(everywhere[0], len(view.nodes))
        return FitError(message=text, refused_by=frozenset({everywhere[0].plugin}))
    question = _PodScheduling(pod, view, pod_class=pod_class, wide=wide, cache=cache)
    preferred = view.find_node(reserved or cache.find_nominated_node(get_pod_key(pod)))
    if preferred is not None and question.fits(preferred) is not None:
        return ScheduleResult(node=preferred.name)
    best = question.find_best_node()
    return ScheduleResult(node=best) if best else _build_fit_error(question)


def _build_fit_error(question: _PodScheduling) -> FitError:
    named = question.pod_class.rules.named_nodes
    places = sorted(question.view.nodes.items())
    answers = with_named_nodes_only({name: question.evaluate_node(place) for name, place in places}, named)
    reasons = [verdict.reason for verdict in answers.values() if isinstance(verdict, DoesNotFit)]
    return FitError(
        message=summarise_refusals(reason.messages for reason in reasons),
        refused_by=frozenset(reason.plugin for reason in reasons),
        answers=answers,
    )


class _PodScheduling:
    """The scheduling of one pod on several nodes."""

    def __init__(
        self, pod: Pod, view: ClusterView, *, pod_class: PodClass, wide: Prepared, cache: SchedulerCache
    ) -> None:
        self.pod = pod
        self.view = view
        self.pod_class = pod_class
        self._wide = wide
        self._cache = cache
        self._nominated = cache.list_nominated_against(pod)

    def find_best_node(self) -> str:
        """The name of the best node that takes the pod; empty: none does."""
        if not (
            self._wide.rules
            or self._nominated
            or self.pod_class.rules.named_nodes is not None
            or has_pod_preferences(self.pod)
        ):
            ranking = self.pod_class.update_ranking(self._cache)
            if ranking.knows_hosts:
                return ranking.find_best(spreads=is_spread_by_default(self.pod)) if len(ranking) else ""
        fitting = self.list_fitting()
        return choose_best_node(self.pod, fitting, self.view) if fitting else ""

    def list_fitting(self) -> list[NodeEvaluation]:
        """Among all nodes, or among those that the pod's affinity names (pods of a DaemonSet name one)."""
        named = self.pod_class.rules.named_nodes
        places: Iterable[NodeState] = self.view.nodes.values()
        if named is not None:
            places = [place for name in sorted(named) if (place := self.view.find_node(name)) is not None]
        found = self.pod_class.evaluate_fitting(places)
        if self._wide.rules or self._nominated:
            found = [judged for judged in found if self.fits(judged.place) is not None]
        return found

    def fits(self, place: NodeState) -> NodeEvaluation | None:
        judged = self.pod_class.evaluate(place)
        if judged.verdict is not FITS or (self._wide.rules and self._wide.check(place) is not FITS):
            return None
        if place.name in self._nominated and self._evaluate_beside_nominated(place) is not FITS:
            return None
        return judged

    def evaluate_node(self, place: NodeState) -> Verdict:
        """The verdict with nominated pods first, as kube-scheduler does; their rejection is the one reported."""
        if place.name in self._nominated:
            crowded = self._evaluate_beside_nominated(place)
            if crowded is not FITS:
                return crowded
        judged = self.pod_class.evaluate(place).verdict
        return self._wide.check(place) if judged is FITS else judged

    def _evaluate_beside_nominated(self, place: NodeState) -> Verdict:
        coming = [PlacedPod(pod) for pod in self._nominated[place.name]]
        crowded = place.with_pods(coming)
        narrow = self.pod_class.rules.check(crowded)
        if narrow is not FITS or not self._wide.rules:
            return narrow
        view = self.view
        for placed_pod in coming:
            view = view.with_pod(placed_pod.pod, place.name)
        return prepare_pod(self.pod, view, profile=WIDE).check(view.nodes[place.name])
