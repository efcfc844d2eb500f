"""The Common Expression Language as Kubernetes 1.34 uses it in `x-kubernetes-validations`.

`objects.schema` compiles the rules of a CRD once (`compile_expression`), estimates the worst case of each
(`Program.estimate_cost`) and evaluates them per object under a `CostBudget`. This package is independent of schemas,
field paths and the reporting of failed rules. docs/decisions/0002-own-cel.md has the reasons for an own implementation.
"""

from plimsoll.objects.cel.cost.budget import CostBudget
from plimsoll.objects.cel.errors import CelBudgetExceeded, CelCompileError, CelError, CelEvaluationError
from plimsoll.objects.cel.names import escape_field
from plimsoll.objects.cel.program import Program, compile_expression
from plimsoll.objects.cel.types.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    BytesType,
    CelType,
    ListType,
    MapType,
    ObjectType,
    OptionalType,
    StringType,
)
from plimsoll.objects.cel.values.optionals import CelOptional

__all__ = [
    "BOOL",
    "BYTES",
    "CIDR",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "IP",
    "NULL",
    "QUANTITY",
    "SEMVER",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "URL",
    "BytesType",
    "CelBudgetExceeded",
    "CelCompileError",
    "CelError",
    "CelEvaluationError",
    "CelOptional",
    "CelType",
    "CostBudget",
    "ListType",
    "MapType",
    "ObjectType",
    "OptionalType",
    "Program",
    "StringType",
    "compile_expression",
    "escape_field",
]
