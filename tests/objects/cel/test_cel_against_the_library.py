"""The same answers as `common-expression-language`, a second implementation, on what both of them know.

Left out on purpose, because there the library differs from Kubernetes: unsigned numbers, sizes of text outside ASCII,
optional values, macros over two variables, errors absorbed by && and ||.
"""

from __future__ import annotations

import cel
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.cel import CelError
from tests.objects.cel.expressions import evaluated

NUMBERS = st.integers(-100, 100).map(lambda number: f"({number})")
TEXTS = st.sampled_from(["''", "'a'", "'ab'", "'hello'", '"x y"', r"'\n'"])


def integers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner)


INTEGERS = st.recursive(NUMBERS, integers, max_leaves=8)
STRINGS = st.recursive(TEXTS, lambda inner: st.builds("({} + {})".format, inner, inner), max_leaves=5)
LISTS = st.lists(INTEGERS, max_size=4).map(lambda items: f"[{', '.join(items)}]")
RELATIONS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
FACTS = st.one_of(
    st.builds("({} {} {})".format, INTEGERS, RELATIONS, INTEGERS),
    st.builds("({} {} {})".format, STRINGS, RELATIONS, STRINGS),
    st.builds("({} in {})".format, INTEGERS, LISTS),
    st.builds("({} == {})".format, LISTS, LISTS),
    st.builds("{}.{}(x, x {} {})".format, LISTS, st.sampled_from(["all", "exists", "exists_one"]), RELATIONS, NUMBERS),
    st.builds("{}.{}({})".format, STRINGS, st.sampled_from(["startsWith", "endsWith", "contains"]), STRINGS),
)


def logic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["&&", "||"]), inner),
        st.builds("(!{})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    )


EXPRESSIONS = st.one_of(
    INTEGERS,
    STRINGS,
    LISTS,
    st.recursive(FACTS, logic, max_leaves=6),
    st.builds("{}.map(x, x * {})".format, LISTS, NUMBERS),
    st.builds("{}.filter(x, x > {})".format, LISTS, NUMBERS),
    st.builds("size({})".format, st.one_of(STRINGS, LISTS)),
    st.builds("{} / {}".format, INTEGERS, NUMBERS),
    st.builds("{} % {}".format, INTEGERS, NUMBERS),
)


def theirs(source: str) -> tuple[str, object]:
    try:
        return "value", cel.evaluate(source)
    except (ValueError, RuntimeError, TypeError, ZeroDivisionError, OverflowError):
        return "error", None


def ours(source: str) -> tuple[str, object]:
    try:
        return "value", evaluated(source)
    except CelError:
        return "error", None


@settings(max_examples=200, deadline=None)
@given(source=EXPRESSIONS)
def test_two_implementations_agree(source: str):
    assert ours(source) == theirs(source), source
