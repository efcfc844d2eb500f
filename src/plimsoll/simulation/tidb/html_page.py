"""A simulation as one self-contained HTML page: the plot, the summary, and every decision with its reasons.

Names come from users' files, so all text is escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from plimsoll.simulation.tidb.tables import DECISION_HEAD, SUMMARY_HEAD, format_decision, format_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.simulation.tidb.outcome import SimulationOutcome

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1b1b1b; }
svg { width: 100%; height: auto; }
table { border-collapse: collapse; margin: 1rem 0 2rem; font-size: 14px; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
tr.held td { color: #666; }
"""


def build_page(title: str, svg: bytes, outcomes: Sequence[SimulationOutcome]) -> bytes:
    """`svg` is a plot of `plots`."""
    # What stands before the element (XML's own heading) has no place inside a page.
    inline = svg[svg.index(b"<svg") :].decode()
    sums = _format_table(SUMMARY_HEAD, [(format_summary(outcome.summary), "") for outcome in outcomes])
    decisions = sorted(
        (decision for outcome in outcomes for decision in outcome.simulated.decisions),
        key=lambda decision: decision.at_s,
    )
    rows = [(format_decision(decision), "held" if decision.is_held else "") for decision in decisions]
    table = _format_table(DECISION_HEAD, rows) if rows else "<p>None: the cluster stays as it is.</p>"
    parts = (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{escape(title)}</title>',
        f"<style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        inline,
        f"<h2>In all</h2>\n{sums}",
        f"<h2>Decisions</h2>\n{table}",
        "</html>\n",
    )
    return "\n".join(parts).encode()


def _format_table(head: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]) -> str:
    lines = ["<table>", f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"]
    for row, kind in rows:
        marked = f' class="{kind}"' if kind else ""
        lines.append(f"<tr{marked}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>")
    return "\n".join([*lines, "</table>"])
