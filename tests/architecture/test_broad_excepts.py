"""Broad `except` stands only where the work on one object, request or task ends, so that the others go on.

A handler that always raises again is no boundary: it cleans up, and the error passes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.architecture.source_tree import modules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.architecture.source_tree import Module

BROAD = frozenset({"Exception", "BaseException"})
BOUNDARIES = {
    "plimsoll.cli.main": "a command: a bug has an exit code of its own",
    "plimsoll.fleet.agent.agent": "one instance of a cluster",
    "plimsoll.fleet.api.guard": "an HTTP request",
    "plimsoll.fleet.workers.passes": "a write to one row",
    "plimsoll.fleet.workers.runner": "a pass of one worker",
    "plimsoll.kafka.cruise_control.server.application": "a user task, which must end",
    "plimsoll.kube.controller.controller": "a reconcile of one object",
    "plimsoll.kube.informer.delivery.handler": "a notification of one handler",
    "plimsoll.kube.informer.store.indexer": "an index function",
    "plimsoll.kube.requests.in_flight_calls": "a call, whose error goes to those that wait for it",
    "plimsoll.local.apiserver.application": "an HTTP request",
    "plimsoll.nodes.actuation.deletion_batch": "the deletion of one node",
    "plimsoll.nodes.autoscaler": "an object that a rule fails on, which is set aside",
    "plimsoll.nodes.requests.classes": "a provisioning class of another package",
    "plimsoll.operator.reconcile_all": "a reconcile of one object",
    "plimsoll.runtime.supervisor": "a supervised task",
    "plimsoll.tidb.component_reconciler": "a component of one autoscaler",
}


def test_broad_excepts_stand_at_boundaries_only():
    found = {name for name, module in modules().items() if any(_find_broad(module))}
    assert found == set(BOUNDARIES)


def test_a_broad_except_is_seen_in_every_form():
    for caught in ("", " Exception", " BaseException as error", " (OSError, Exception)"):
        assert _swallows(f"try:\n    pass\nexcept{caught}:\n    pass\n")
    for handler in ("except OSError:\n    pass\n", "except Exception:\n    clean_up()\n    raise\n"):
        assert not _swallows(f"try:\n    pass\n{handler}")
    assert _swallows("with suppress(Exception):\n    pass\n")


def _find_broad(module: Module) -> Iterator[ast.AST]:
    return (node for node in ast.walk(module.tree) if _is_broad(node))


def _swallows(source: str) -> bool:
    return any(map(_is_broad, ast.walk(ast.parse(source))))


def _is_broad(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        always_raises = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
        return not always_raises and (node.type is None or _names_broad(node.type))
    if isinstance(node, ast.Call):
        is_suppress = "suppress" in {getattr(node.func, "id", ""), getattr(node.func, "attr", "")}
        return is_suppress and any(map(_names_broad, node.args))
    return False


def _names_broad(caught: ast.expr) -> bool:
    return any(isinstance(part, ast.Name) and part.id in BROAD for part in ast.walk(caught))
