"""Compares sentences of Plimsoll with those in `sentences.json`, the one file of their wording.

A test asserts codes and facts itself and passes the sentence to the fixture `reviewed`, so that a rewording changes one
file only. The tests beside this module collect the sentences of whole subsystems and pass them to `check_subsystem`.
With `PLIMSOLL_UPDATE_GOLDEN=1` the file is rewritten; run such tests without `-n` and review the difference.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

GOLDEN: Final = Path(__file__).parent / "sentences.json"
BY_TEST: Final = "by test"
"""The part that holds sentences by the name of their test; the parts of subsystems hold them by place and code."""
SUBSYSTEMS: Final = ("kafka", "nodes")
NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")

Sentence = tuple[str, str, str]
"""Where it appears, its reason code, the sentence."""


class ReviewedSentences:
    """The sentences of one test, in the order in which it passes them."""

    def __init__(self, test: str, folder: str) -> None:
        self._test = test
        self._folder = folder
        self._passed: list[str] = []

    def __call__(self, *sentences: str) -> None:
        """Compare the next sentences; the temporary folder of the test is written as TMP."""
        for sentence in sentences:
            self._passed.append(sentence.replace(self._folder, "TMP"))
            if not is_updating():
                position = len(self._passed) - 1
                assert self._passed[-1:] == self._read()[position : position + 1], "see tests/golden/sentences.json"

    def finish(self) -> None:
        """Compare the number of sentences, or write them."""
        if is_updating():
            golden = read_golden()
            golden.setdefault(BY_TEST, {})[self._test] = self._passed
            write_golden(golden)
        assert self._passed == self._read()

    def _read(self) -> list[str]:
        found: list[str] = read_golden().get(BY_TEST, {}).get(self._test, [])
        return found


def check_subsystem(subsystem: str, sentences: Iterable[Sentence]) -> None:
    """Compare all sentences of a subsystem, with numbers replaced by `#`, or write them."""
    assert subsystem in SUBSYSTEMS
    found: dict[str, dict[str, set[str]]] = {}
    for place, code, sentence in sentences:
        found.setdefault(place, {}).setdefault(code, set()).add(NUMBER.sub("#", sentence))
    ordered = {place: {code: sorted(found[place][code]) for code in sorted(found[place])} for place in found}
    if is_updating():
        write_golden(read_golden() | {subsystem: ordered})
    assert ordered == read_golden().get(subsystem), "see tests/golden/sentences.json"


def is_updating() -> bool:
    return bool(os.environ.get("PLIMSOLL_UPDATE_GOLDEN"))


def read_golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


def write_golden(golden: dict[str, Any]) -> None:
    ordered = {part: dict(sorted(golden[part].items())) for part in sorted(golden)}
    GOLDEN.write_text(json.dumps(ordered, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
