"""The validation of an applied configuration: unknown fields, wrong types, missing or repeated list keys.

kube-apiserver answers with 500 and these words; it reads maps in no particular order, this server in the order of the
body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.apply.fieldpath import elements
from plimsoll.local.apiserver.apply.typed.types import Atom, BadItem, Scalar
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from plimsoll.local.apiserver.apply.typed.types import ListType, MapType


def find_validation_error(value: Any, atom: Atom) -> str | None:
    """None if the value fits, else everything that is wrong with it, one line each if several."""
    problems: list[str] = []
    _check(value, atom, path="", problems=problems)
    if not problems:
        return None
    return problems[0] if len(problems) == 1 else "\n".join(["errors:", *(f"  {problem}" for problem in problems)])


def _check(value: Any, atom: Atom, *, path: str, problems: list[str]) -> None:
    if value is None:
        return
    atom = atom.narrow(value)
    if atom.map is not None:
        if isinstance(value, dict):
            _check_map(value, atom.map, path=path, problems=problems)
        else:
            problems.append(_describe(path, f"expected map, got {_format_boxed(value)}"))
    elif atom.scalar is not None:
        problem = _find_scalar_problem(value, atom.scalar)
        if problem:
            problems.append(_describe(path, problem))
    elif atom.list is not None:
        if isinstance(value, list):
            _check_list(value, atom.list, path=path, problems=problems)
        else:
            problems.append(_describe(path, f"expected list, got {_format_boxed(value)}"))


def _check_map(value: dict[str, Any], map_type: MapType, *, path: str, problems: list[str]) -> None:
    for name, item in value.items():
        below = f"{path}.{name}"
        atom = map_type.find_type(name)
        if atom is None:
            problems.append(_describe(below, "field not declared in schema"))
            return
        _check(item, atom, path=below, problems=problems)


def _check_list(value: list[Any], list_type: ListType, *, path: str, problems: list[str]) -> None:
    atom = list_type.element
    if list_type.is_atomic:
        for position, item in enumerate(value):
            _check(item, atom, path=f"{path}[{position}]", problems=problems)
        return
    seen: set[str] = set()
    for position, item in enumerate(value):
        try:
            element = list_type.build_path_element(item)
        except BadItem as problem:
            problems.append(_describe(path, f"element {position}: {problem}"))
            return
        spelled = elements.format_path((element,))
        if element in seen:
            problems.append(_describe(path, f"duplicate entries for key {spelled}"))
        seen.add(element)
        _check(item, atom, path=f"{path}{spelled}", problems=problems)


def _find_scalar_problem(value: Any, scalar: Scalar) -> str | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if scalar is Scalar.NUMERIC and not is_number:
        return f"expected numeric (int or float), got {go_text.get_type_name(value)}"
    if scalar is Scalar.STRING and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_format_go_syntax(value)}}}"
    if scalar is Scalar.BOOLEAN and not isinstance(value, bool):
        return f"expected boolean, got {_format_boxed(value)}"
    if scalar is Scalar.UNTYPED and isinstance(value, (dict, list)):
        return f"expected any scalar, got {_format_boxed(value)}"
    return None


def _describe(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem


def _format_boxed(value: Any) -> str:
    """`%v` of the struct that holds the value."""
    return f"&{{{go_text.format_plain(value)}}}"


def _format_go_syntax(value: Any) -> str:
    """`%#v`."""
    if isinstance(value, str):
        return go_text.quote(value)
    if isinstance(value, dict):
        items = ", ".join(f"{go_text.quote(key)}:{_format_go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{items}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_format_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else go_text.format_plain(value)
