"""The file of reserved instances (docs/design/fleet.md 2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, RootModel

from plimsoll.fleet.config.strict import NULL_IS_EMPTY, Document, Mistake, Name
from plimsoll.fleet.model.policy import Reserve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.fleet.model.policy import InstanceType

DEFAULT_SIZE: Final = "x1"
MOST_RESERVED: Final = 1000
"""Per type and cluster. They are listed with every poll of an agent."""


class ReserveDocument(Document):
    """Reserved instances of one instance type per cluster."""

    num_reserved_instances: Annotated[int, Field(ge=0, le=MOST_RESERVED)] = Field(
        default=0, description="How many; 0: none."
    )
    base_streaming_unit_size: Name = Field(default=DEFAULT_SIZE, description="Their size.")


class NodePrewarmingDocument(RootModel[dict[Name, Annotated[ReserveDocument, NULL_IS_EMPTY]]]):
    """`node-prewarming-configuration.yaml`: reserved instances by instance type. Empty: none."""

    def list_warnings(self) -> list[str]:
        return [
            f"{name}: no instances are reserved"
            for name, found in self.root.items()
            if not found.num_reserved_instances
        ]

    def build_reserves(self) -> dict[str, Reserve]:
        return {
            name: Reserve(instances=found.num_reserved_instances, size_id=found.base_streaming_unit_size)
            for name, found in self.root.items()
        }


def find_reserve_mistakes(document: Any, instance_types: Mapping[str, InstanceType]) -> list[Mistake]:
    """Types and sizes that are not configured, as far as the document can be read."""
    mistakes = []
    for name, entry in document.items() if isinstance(document, dict) else ():
        known = instance_types.get(name)
        size = entry.get("base_streaming_unit_size", DEFAULT_SIZE) if isinstance(entry, dict) else DEFAULT_SIZE
        if known is None:
            mistakes.append(Mistake(str(name), f"the instance type {name!r} is not configured"))
        elif isinstance(size, str) and known.find_size(size) is None:
            path = f"{name}.base_streaming_unit_size"
            mistakes.append(Mistake(path, f"the instance type {name!r} has no size {size!r}"))
    return mistakes
