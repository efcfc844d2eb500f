from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.storage import sorted_paths
from plimsoll.local.apiserver.storage.sorted_paths import SortedPaths

paths = st.text(alphabet="ab-./", min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(toggled=st.lists(paths, max_size=60), first=paths, end=st.none() | paths)
def test_sorted_paths_are_what_a_sorted_set_is(toggled: list[str], first: str, end: str | None):
    model: set[str] = set()
    with patch.object(sorted_paths, "CHUNK", 2):
        found = SortedPaths()
        for path in toggled:
            (found.remove if path in model else found.add)(path)
            model ^= {path}
    ordered = sorted(model)
    assert list(found.between("", None)) == ordered
    assert list(found.between(first, end)) == [
        path for path in ordered if path >= first and (end is None or path < end)
    ]
    assert found.before(first) == sum(path < first for path in ordered)
    assert len(found) == len(ordered)
