"""Warning headers, bounded as kube-apiserver bounds them: clients and proxies refuse an answer with too long a head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# In characters. Beyond the first, every warning is cut to the second and those that still do not fit are left out.
_MOST_IN_ALL: Final = 4 * 1024
_MOST_WHEN_CUT: Final = 256


def build_warning_headers(warnings: Iterable[str]) -> list[tuple[str, str]]:
    """One header per different warning, in order."""
    texts = [text for text in dict.fromkeys(warnings) if text]
    if sum(map(len, texts)) > _MOST_IN_ALL:
        texts = _truncate(texts)
    return [("Warning", f"299 - {_quote(text)}") for text in texts]


def _truncate(texts: list[str]) -> list[str]:
    """The first warnings, each cut, up to and with the one that passes the limit.

    kube-apiserver cuts once a warning does not fit; it keeps all those up to that warning, which may be more.
    """
    written = fitting = 0
    for text in texts:
        written += len(text)
        fitting += 1
        if written > _MOST_IN_ALL:
            break
    cut: list[str] = []
    written = 0
    for position, text in enumerate(texts):
        if position >= fitting and written >= _MOST_IN_ALL:
            break
        cut.append(text[:_MOST_WHEN_CUT])
        written += len(cut[-1])
    return cut


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
