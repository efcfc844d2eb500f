"""One thing wrong with a TidbClusterAutoScaler: a code for machines, the path, and the sentence."""

from __future__ import annotations

from plimsoll.core.values import Value


class FieldProblem(Value):
    """`component` and `rule` say where it is told; `code` is the specification's (V01 to V16)."""

    code: str
    field: str
    reason: str
    component: str = ""
    rule: str = ""

    @property
    def order(self) -> tuple[str, str, str, str]:
        return self.component, self.rule, self.field, self.reason

    def __str__(self) -> str:
        # One error a line, whatever somebody called a resource type.
        return f"{self.field}: {self.reason}".replace("\n", " ")
