"""A policy and the flags that make it are the same thing in two forms."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.config.flags import Flag, InvalidOptions, State
from plimsoll.nodes.config.options import FLAGS, list_policy_flags, read_flags_of_policy, read_options

SIZES = st.tuples(st.integers(0, 50), st.integers(50, 900))
WORDS = st.from_regex(r"[a-z][a-z0-9.:/-]{0,12}[a-z0-9]", fullmatch=True)
BOUNDED = {
    "nodes": st.lists(st.tuples(SIZES, WORDS).map(lambda limit: f"{limit[0][0]}:{limit[0][1]}:{limit[1]}"), max_size=3),
    "gpu-total": st.lists(
        st.tuples(WORDS, SIZES).map(lambda limit: f"{limit[0]}:{limit[1][0]}:{limit[1][1]}"), max_size=3
    ),
    "consolidation-budget": st.lists(st.sampled_from(["10%", "2:Empty", "0@0 9 * * mon-fri/8h"]), max_size=3),
    "expander": st.permutations(["cost", "priority", "random"]),
}


def values_of(flag: Flag) -> st.SearchStrategy[Any]:
    if flag.name in BOUNDED:
        return BOUNDED[flag.name]
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "duration": st.floats(0, 1e9).map(lambda seconds: f"{seconds:.9f}s"),
        "true or false": st.booleans(),
        "count": st.integers(1, 1 << 40),
        "number": st.floats(0, 1),
        "list": st.lists(WORDS, max_size=3),
        "text": WORDS,
    }
    if flag.kind.startswith("MIN:MAX"):
        return SIZES.map(lambda pair: f"{pair[0]}:{pair[1]}")
    return kinds[flag.kind] if flag.kind in kinds else st.sampled_from(flag.kind.split(" | "))


IMPLEMENTED = sorted(name for name, flag in FLAGS.items() if flag.state is State.IMPLEMENTED)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), names=st.lists(st.sampled_from(IMPLEMENTED), unique=True, max_size=6))
def test_what_is_written_down_is_read_back_as_it_was(data: st.DataObject, names: list[str]):
    given_flags = {name: data.draw(values_of(FLAGS[name]), label=name) for name in names}
    made = read_flags_of_policy(given_flags)
    written = json.loads(json.dumps(list_policy_flags(made)))
    assert read_flags_of_policy(written) == made
    assert list(written) == sorted(written)


def test_only_what_is_not_the_default_is_written():
    assert list_policy_flags(read_options({})) == {}
    given_flags = {"enable-node-autoprovisioning": "true", "max-cpu": "20", "scale-down-unneeded-time": "1h30m"}
    written = {"max-cpu": 20, "node-autoprovisioning": True, "scale-down-unneeded-time": "5400.0s"}
    assert list_policy_flags(read_options(given_flags)) == written


def test_every_flag_that_cannot_be_read_is_named():
    with pytest.raises(InvalidOptions) as caught:
        read_flags_of_policy({"max-cpu": "many", "no-such-flag": 1})
    assert [path for path, _ in caught.value.problems] == ["flags.max-cpu", "flags.no-such-flag"]
