"""Bodies and searches of requests to the simulated OCM: read with their checks, as OCM refuses them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, TypeVar

import msgspec

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Wire
from plimsoll.local.ocm.ports import PoolTaint  # noqa: TC001 - msgspec reads annotations at run time

W = TypeVar("W")
_Replicas = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=54, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")]
_PoolId = Annotated[str, msgspec.Meta(min_length=1, max_length=30, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")]
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class CallRefused(PlimsollError):
    """The answer to a request is an error."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def _keep_name(field: str) -> str:
    return field


class _Body(Wire, rename=_keep_name):
    """OCM spells its fields in snake case."""


class Link(_Body):
    """Another object, by its id."""

    id: _Id


class Autoscaling(_Body):
    """The bounds of a pool."""

    min_replicas: _Replicas
    max_replicas: _Replicas

    def check(self, *, zones: int) -> None:
        if self.max_replicas < self.min_replicas:
            raise CallRefused(400, "max_replicas must be at least min_replicas")
        if zones > 1 and (self.min_replicas % zones or self.max_replicas % zones):
            raise CallRefused(400, f"a pool of a multi-AZ cluster needs replicas that are multiples of {zones}")


class Nodes(_Body):
    """The default pool of a new cluster."""

    compute_machine_type: Link
    autoscale_compute: Autoscaling


class ClusterBody(_Body):
    """`POST /clusters`."""

    name: _Name
    cloud_provider: Link
    region: Link
    nodes: Nodes
    multi_az: bool = False
    version: Link | None = None


class PoolBody(_Body):
    """`POST …/machine_pools`."""

    id: _PoolId
    instance_type: _Id
    autoscaling: Autoscaling
    labels: dict[str, str] = {}
    taints: tuple[PoolTaint, ...] = ()


class PoolPatch(_Body):
    """`PATCH …/machine_pools/{id}`."""

    autoscaling: Autoscaling


class SyncSetBody(_Body):
    """`POST …/syncsets`, and `PATCH …/syncsets/{id}`, where the id is that of the path."""

    resources: list[dict[str, Any]]
    id: str = ""


class Parameter(_Body):
    """A parameter of an add-on."""

    id: _Id
    value: str


class Parameters(_Body):
    """The parameters of an add-on, as OCM lists them."""

    items: tuple[Parameter, ...] = ()

    def to_dict(self) -> dict[str, str]:
        return {parameter.id: parameter.value for parameter in self.items}


class AddonBody(_Body):
    """`POST …/addons`, and `PATCH …/addons/{id}` without `addon`."""

    addon: Link | None = None
    parameters: Parameters = Parameters()


class IdentityProviderBody(_Body):
    """`POST …/identity_providers`."""

    name: _Id
    type: _Id
    open_id: dict[str, Any] = {}


def read_body(content: Any, kind: type[W]) -> W:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise CallRefused(400, f"the body is not valid: {error}") from error


_CONDITION: Final = re.compile(r"\s*(name|id)\s*(=|like)\s*'([^']*)'\s*", re.IGNORECASE)


class Search:
    """`name = 'x'`, `name like 'mk-%'` and `id = 'x'`, joined by `and`."""

    def __init__(self, text: str) -> None:
        self._conditions: list[tuple[str, re.Pattern[str]]] = []
        for part in re.split(r"\s+and\s+", text, flags=re.IGNORECASE) if text.strip() else ():
            found = _CONDITION.fullmatch(part)
            if found is None:
                raise CallRefused(400, f"the search {part[:100]!r} is not understood")
            field, operator, value = found.groups()
            is_like = operator.lower() == "like"
            pattern = ".*".join(map(re.escape, value.split("%"))) if is_like else re.escape(value)
            self._conditions.append((field.lower(), re.compile(pattern, re.DOTALL)))

    def matches(self, values: dict[str, str]) -> bool:
        return all(pattern.fullmatch(values[field]) for field, pattern in self._conditions)
