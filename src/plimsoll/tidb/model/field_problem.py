"""A problem in a field of a TidbClusterAutoScaler: its code, its path and its message."""

from __future__ import annotations

from plimsoll.core.values import Value


class FieldProblem(Value):
    """One invalid field. `code` is V01 to V16 of docs/design/tidb.md; `component` and `rule` give the sort order."""

    code: str
    field: str
    reason: str
    component: str = ""
    rule: str = ""

    @property
    def order(self) -> tuple[str, str, str, str]:
        return self.component, self.rule, self.field, self.reason

    def __str__(self) -> str:
        # One error per line, even if the name of a resource type contains a line break.
        return f"{self.field}: {self.reason}".replace("\n", " ")
