"""Strategies as JSON: the request body of `POST /autoscaling`.

Cpu is in thousandths of a core, memory and storage are in bytes. Older forms are accepted: no `node_count` means no
limit, and a `storage_rule` without a `max_threshold`, which had another meaning then, is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Wire
from plimsoll.tidb.model.components import RESERVED_TYPES, Component
from plimsoll.tidb.model.decimals import to_exact
from plimsoll.tidb.model.limits import MOST_BYTES
from plimsoll.tidb.model.strategy import DEFAULT_MIN_THRESHOLD, ResourceType, Rule, Strategy
from plimsoll.tidb.wire.decoding import read_wire

if TYPE_CHECKING:
    from collections.abc import Iterable

Whole = Annotated[int, Meta(ge=0, le=MOST_BYTES)]


# ---- the wire


class _RuleForm(Wire, rename={}):
    max_threshold: float | None = None
    min_threshold: float | None = None
    resource_types: tuple[str, ...] | None = None


class _ComponentForm(Wire, rename={}):
    component: Component
    cpu_rule: _RuleForm | None = None
    storage_rule: _RuleForm | None = None


class _ResourceForm(Wire, rename={}):
    resource_type: str
    cpu: Whole = 0
    memory: Whole = 0
    storage: Whole = 0
    count: Whole | None = None
    group_suffix: str = ""


class _StrategyForm(Wire, rename={}):
    rules: tuple[_ComponentForm, ...] = ()
    resources: tuple[_ResourceForm, ...] = ()
    node_count: Whole | None = None
    pending: dict[str, Whole] = {}
    registered: dict[str, Whole] = {}


def read_strategies(data: bytes) -> tuple[Strategy, ...]:
    """One strategy per rule of the body, in its order. Raises `InvalidInput`, naming the field."""
    form = read_wire(_StrategyForm, data)
    if not form.rules:
        raise InvalidInput("must have at least one rule", path="rules")
    resources = _index_by_type(form.resources)
    strategies: list[Strategy] = []
    for index, rule in enumerate(form.rules):
        if any(rule.component is earlier.component for earlier in strategies):
            raise InvalidInput(f"component {rule.component} occurs twice", path=f"rules[{index}].component")
        strategies.append(_build_strategy(form, rule, resources, path=f"rules[{index}]"))
    return tuple(strategies)


def write_strategy(strategy: Strategy) -> bytes:
    """Encode a strategy. Equal strategies give equal bytes: everything is sorted by the names of types."""
    own = strategy.component.homogeneous_type
    homogeneous = [strategy.homogeneous] if strategy.homogeneous else []
    resources = sorted([*strategy.types.values(), *homogeneous], key=lambda resource_type: resource_type.name)
    rule = _ComponentForm(
        component=strategy.component,
        cpu_rule=_build_rule_form(strategy.cpu, own),
        storage_rule=_build_rule_form(strategy.storage, own),
    )
    form = _StrategyForm(
        rules=(rule,),
        resources=tuple(map(_build_resource_form, resources)),
        node_count=strategy.node_count,
        pending=strategy.pending,
        registered=strategy.registered,
    )
    return msgspec.json.encode(form, order="deterministic")


def _index_by_type(forms: Iterable[_ResourceForm]) -> dict[str, ResourceType]:
    resources: dict[str, ResourceType] = {}
    for index, form in enumerate(forms):
        path = f"resources[{index}]"
        if form.resource_type in resources:
            raise InvalidInput(f"{form.resource_type} occurs twice", path=f"{path}.resource_type")
        if not form.cpu and form.resource_type not in RESERVED_TYPES:
            raise InvalidInput(f"{form.resource_type} has no cpu", path=f"{path}.cpu")
        resources[form.resource_type] = ResourceType(
            name=form.resource_type,
            cpu_milli=form.cpu,
            memory_bytes=form.memory,
            storage_bytes=form.storage,
            count=form.count,
            group_suffix=form.group_suffix,
        )
    return resources


def _build_strategy(
    form: _StrategyForm, rule: _ComponentForm, resources: dict[str, ResourceType], *, path: str
) -> Strategy:
    types = {name: resource_type for name, resource_type in resources.items() if name not in RESERVED_TYPES}
    storage = rule.storage_rule if rule.component is Component.TIKV else None
    if storage is not None and storage.max_threshold is None:
        storage = None
    return Strategy(
        component=rule.component,
        cpu=_build_rule(rule.cpu_rule, types, path=f"{path}.cpu_rule") if rule.cpu_rule else None,
        storage=_build_rule(storage, types, path=f"{path}.storage_rule") if storage else None,
        types=types,
        homogeneous=resources.get(rule.component.homogeneous_type),
        node_count=form.node_count,
        pending=form.pending,
        registered=form.registered,
    )


def _build_rule(form: _RuleForm, types: dict[str, ResourceType], *, path: str) -> Rule:
    if form.max_threshold is None:
        raise InvalidInput("is required", path=f"{path}.max_threshold")
    high = to_exact(form.max_threshold)
    low = to_exact(DEFAULT_MIN_THRESHOLD if form.min_threshold is None else form.min_threshold)
    if not 0 < high < 1:
        raise InvalidInput(f"max_threshold ({form.max_threshold:g}) should be between 0 and 1", path=path)
    if not 0 <= low < high:
        raise InvalidInput(f"min_threshold ({float(low):g}) should be between 0 and max_threshold", path=path)
    named = types if form.resource_types is None else set(form.resource_types) - RESERVED_TYPES
    unknown = sorted(set(named) - types.keys())
    if unknown:
        raise InvalidInput(f"{unknown[0]} is not among the resources", path=f"{path}.resource_types")
    return Rule(high=high, low=low, types=tuple(sorted(named)))


def _build_rule_form(rule: Rule | None, homogeneous_type: str) -> _RuleForm | None:
    if rule is None:
        return None
    types = tuple(sorted({*rule.types, homogeneous_type}))
    return _RuleForm(max_threshold=float(rule.high), min_threshold=float(rule.low), resource_types=types)


def _build_resource_form(resource_type: ResourceType) -> _ResourceForm:
    return _ResourceForm(
        resource_type=resource_type.name,
        cpu=resource_type.cpu_milli,
        memory=resource_type.memory_bytes,
        storage=resource_type.storage_bytes,
        count=resource_type.count,
        group_suffix=resource_type.group_suffix,
    )
