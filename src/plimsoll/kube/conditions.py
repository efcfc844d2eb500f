"""Tells in an object's status how we judge it: conditions, and fields of the status that go with them.

Written by server-side apply on the status subresource, so that conditions of others are not ours to lose. What follows
from that, and from being one of many writers:

* An apply names everything we own: what is left out is taken away. So a writer is told once which types and which
  fields of the status are its own, and whoever writes says all that hold now. Nothing depends on what this writer, or
  the one before a restart, wrote earlier. A field that somebody else set as well stays until they let go of it.
* Nothing is sent if nothing would change. `lastTransitionTime` changes with `status` and with nothing else.
* The apply carries uid and resourceVersion of the object the decision was made on. An object made anew is not written
  to; a newer version of the same is read and judged again, because only its conditions tell whether a status changed.
* It is forced. Types in `owned` are ours by name; somebody who applied one of them by hand loses it to us, which is
  what users expect of a controller, and a conflict would only stop us from telling.

The kind needs a status subresource and `x-kubernetes-list-type: map` with key `type` on its conditions. Without the
subresource the server answers NotFound, which looks as if the object were gone; without the list type the apply takes
over the whole list and removes other writers' conditions. The definitions Plimsoll ships have both, and so have Nodes,
Pods and PodDisruptionBudgets. Conditions of Nodes, Deployments and other old kinds have no `observedGeneration`, and
the server refuses fields it does not know: give their subjects generation 0 and it is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value, Wire
from plimsoll.kube.errors import Conflict, NotFound, UnreadableAnswer
from plimsoll.objects.api.meta import Condition, ObjectMeta, written_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.api.resource import Resource

ATTEMPTS: Final = 5
# What the API's own schema of meta/v1 conditions asks for.
MESSAGE_LENGTH: Final = 32_768
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?\Z")
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_TYPE: Final = re.compile(rf"({_LABEL}(\.{_LABEL})*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])\Z")
_STATUSES: Final = ("True", "False", "Unknown")


class Subject(Value):
    """An object as it was when we judged it. `status` is its whole status as plain JSON, or the fields we write."""

    metadata: ObjectMeta
    conditions: tuple[Condition, ...] = ()
    status: dict[str, Any] = {}

    @classmethod
    def read(cls, data: bytes) -> Self:
        """From what a server answered, of any kind."""
        try:
            decoded = msgspec.json.decode(data, type=_AnyObject)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableAnswer(f"an object whose status we write cannot be read: {error}") from error
        status = decoded.status or {}
        return cls(metadata=decoded.metadata, conditions=_readable(status), status=status)


class Unchanged(Value):
    """All of it stood there already."""


class Told(Value):
    """It was written, and gave this version."""

    resource_version: str


class SubjectGone(Value):
    """There is no such object, or another one of the same name."""


Outcome = Told | Unchanged | SubjectGone


class ConditionsWriter:
    """Writes conditions of the types `owned` and the fields `owned_fields` of a status, as `field_manager`."""

    def __init__(
        self,
        client: Client,
        *,
        owned: Iterable[str],
        owned_fields: Iterable[str] = (),
        field_manager: str,
        clock: Clock,
    ) -> None:
        self._client = client
        self._owned = frozenset(owned)
        self._owned_fields = frozenset(owned_fields)
        self._field_manager = field_manager
        self._clock = clock
        for type_ in sorted(self._owned):
            if not _TYPE.match(type_) or len(type_) > 316:
                raise InvalidInput(f"{type_!r} cannot be a condition's type", path="owned")
        if self._owned_fields & {"", "conditions"}:
            raise InvalidInput("a field has a name, and conditions are owned by type", path="owned_fields")

    async def write(
        self,
        of: type[WireObject] | Resource,
        subject: Subject,
        conditions: Iterable[Condition],
        *,
        fields: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Make these conditions hold, and those of our types that are not among them be gone; our fields likewise.

        Of a condition type, status, reason and message count; when it changed and for which generation it holds is
        filled in here.
        """
        claims = [self._checked(condition, subject) for condition in conditions]
        if len({condition.type for condition in claims}) < len(claims):
            raise InvalidInput("a type is there twice", path="conditions")
        fields = {name: value for name, value in (fields or {}).items() if value is not None}
        if foreign := sorted(fields.keys() - self._owned_fields):
            raise InvalidInput("this writer does not own the field", path=f"fields.{foreign[0]}")
        current: Subject | None = subject
        for attempt in range(1, ATTEMPTS + 1):
            if current is None or current.metadata.uid != subject.metadata.uid:
                return SubjectGone()
            if self._holds(current, claims, fields):
                return Unchanged()
            try:
                return await self._apply(of, current, claims, fields)
            except NotFound:
                return SubjectGone()
            except Conflict:
                if attempt == ATTEMPTS:
                    raise
            current = await self._read(of, current.metadata)
        raise AssertionError("the last attempt returns or raises")

    def _checked(self, claim: Condition, subject: Subject) -> Condition:
        path = f"conditions[{claim.type}]"
        if claim.type not in self._owned:
            raise InvalidInput("this writer does not own the type", path=path)
        if claim.status not in _STATUSES:
            raise InvalidInput(f"must be True, False or Unknown, is {claim.status!r}", path=f"{path}.status")
        if not _REASON.match(claim.reason) or len(claim.reason) > 1024:
            raise InvalidInput(f"must be one CamelCase word, is {claim.reason[:64]!r}", path=f"{path}.reason")
        return Condition(
            type=claim.type,
            status=claim.status,
            reason=claim.reason,
            message=claim.message[:MESSAGE_LENGTH],
            observed_generation=subject.metadata.generation,
        )

    def _holds(self, current: Subject, claims: Iterable[Condition], fields: Mapping[str, Any]) -> bool:
        ours = {
            condition.type: _judgement(condition) for condition in current.conditions if condition.type in self._owned
        }
        wanted = {condition.type: _judgement(condition) for condition in claims}
        written = {name: value for name, value in current.status.items() if name in self._owned_fields}
        return ours == wanted and written == fields

    async def _apply(
        self, of: type[WireObject] | Resource, current: Subject, claims: Iterable[Condition], fields: Mapping[str, Any]
    ) -> Told | Unchanged:
        metadata = current.metadata
        before = {condition.type: condition for condition in current.conditions}
        now = self._clock.now()
        conditions = [
            _written(condition, before.get(condition.type), now)
            for condition in sorted(claims, key=lambda claim: claim.type)
        ]
        identity = {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        }
        body = {
            "metadata": {name: value for name, value in identity.items() if value},
            "status": {**fields, **({"conditions": conditions} if conditions else {})},
        }
        written: WireObject = await self._client.apply(
            of,
            metadata.name,
            body,
            namespace=metadata.namespace,
            subresource="status",
            force=True,
            field_manager=self._field_manager,
        )
        version = written.metadata.resource_version
        # What somebody else holds on to cannot be taken away, and a write that changes nothing keeps its version.
        return Unchanged() if version == metadata.resource_version else Told(resource_version=version)

    async def _read(self, of: type[WireObject] | Resource, known: ObjectMeta) -> Subject | None:
        try:
            return Subject.read(await self._client.get_raw(of, known.name, namespace=known.namespace))
        except NotFound:
            return None


class _AnyObject(Wire):
    """What matters here of any kind."""

    metadata: ObjectMeta = ObjectMeta()
    status: dict[str, Any] | None = None


def _readable(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions that are such. Anybody may write odd ones; ours would be replaced, others' do not concern us."""
    found = []
    listed = status.get("conditions")
    for one in listed if isinstance(listed, list) else ():
        try:
            found.append(msgspec.convert(one, Condition))
        except msgspec.ValidationError:
            continue
    return tuple(found)


def _judgement(condition: Condition) -> tuple[str, str, str, int]:
    return condition.status, condition.reason, condition.message, condition.observed_generation


def _written(claim: Condition, before: Condition | None, now: datetime) -> dict[str, Any]:
    since = before.last_transition_time if before is not None and before.status == claim.status else None
    condition = {
        "type": claim.type,
        "status": claim.status,
        "reason": claim.reason,
        "message": claim.message,
        "lastTransitionTime": written_time(since or now),
    }
    return {**condition, "observedGeneration": claim.observed_generation} if claim.observed_generation else condition
