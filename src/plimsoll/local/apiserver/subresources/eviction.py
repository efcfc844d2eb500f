"""pods/eviction: a deletion that respects the pod's disruption budget.

A pod that does no work (finished, not started, terminating) is deleted without a budget. Otherwise the one budget that
covers it is charged, atomically, and only then the pod is marked and deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.admission.server_status import write_status
from plimsoll.local.apiserver.registry.deletion import delete_object
from plimsoll.local.apiserver.storage import Decision, Key, ListQuery, Put, Stored
from plimsoll.local.apiserver.subresources import disruption_budgets
from plimsoll.local.apiserver.subresources.body_decoding import decode_body
from plimsoll.local.apiserver.subresources.pod_conditions import is_ready, set_condition

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]

EVICTED: Final[Json] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

_BUDGETS: Final = "policy/poddisruptionbudgets"
_SEVERAL: Final = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_TRIES: Final = 20
_VERSIONS: Final = frozenset({"", "policy/v1", "policy/v1beta1"})


async def evict(server: Server, call: RequestContext, body: Json) -> Json:
    """Evict the pod of the call by the Eviction `decode_body`; returns the Status of the response (201)."""
    options = _build_options(call, body)
    dry_run = bool(options.get("dryRun"))
    eviction = _Eviction(server, call, options, dry_run=dry_run)
    if not await eviction.evict_idle_pod():
        await eviction.evict_working_pod()
    return EVICTED


def _build_options(call: RequestContext, body: Json) -> Json:
    """The DeleteOptions of the eviction, with the dry run that the query may ask for."""
    version, kind = body.get("apiVersion") or "", body.get("kind") or "Eviction"
    if version not in _VERSIONS:
        mismatch = (
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
        )
        version_name = version.rpartition("/")[2]
        raise status_errors.bad_request(
            f'{kind} in version "{version_name}" cannot be handled as a Eviction: {mismatch}'
        )
    eviction = decode_body(call, body, api_version="policy/v1", kind="Eviction")
    if eviction["metadata"].get("name", "") != call.name:
        raise status_errors.bad_request("name in URL does not match name in Eviction object")
    options: Json = dict(eviction.get("deleteOptions") or {})
    if call.dry_run and not options.get("dryRun"):
        options["dryRun"] = ["All"]
    return options


class _Eviction:
    """One request. Conflicts with others are tried again, unless the caller named the version it means."""

    def __init__(self, server: Server, call: RequestContext, options: Json, *, dry_run: bool) -> None:
        self._server = server
        self._store = server.store
        self._options = options
        self._dry_run = dry_run
        self._key = Key("pods", call.namespace, call.name)
        self._call = call.to_delete(call.name, dry_run=dry_run)
        self._names_version = bool((options.get("preconditions") or {}).get("resourceVersion"))

    async def evict_idle_pod(self) -> bool:
        """Delete a pod that needs no budget; False if it needs one."""
        for tried in range(1, _TRIES + 1):
            pod = self._get_pod()
            if not _is_idle(pod):
                return False
            must_stay_so = not _is_leaving(pod) and not self._names_version
            try:
                await self._delete(only_as=pod if must_stay_so else None)
            except status_errors.StatusError as refusal:
                if refusal.code != 409 or self._names_version or tried == _TRIES:
                    raise
            else:
                return True
        return False

    async def evict_working_pod(self) -> None:
        pod = self._get_pod()
        found = [
            budget
            for budget in self._list_budgets()
            if disruption_budgets.covers(budget, pod["metadata"].get("labels") or {})
        ]
        if len(found) > 1:
            raise status_errors.unexpected(_SEVERAL)
        if not found:
            await self._delete(only_as=None)
        elif not is_ready(pod) and disruption_budgets.allows_unready_eviction(found[0]):
            await self._delete_unready(pod, found[0]["metadata"]["name"])
        else:
            await self._charge(found[0])
            await self._delete(only_as=None)

    def _get_pod(self) -> Json:
        stored = self._store.get(self._key)
        if stored is None:
            raise status_errors.not_found(self._key.name, group="", resource="pods")
        return stored.decode_body()

    def _list_budgets(self) -> list[Json]:
        page = self._store.list(_BUDGETS, ListQuery(namespace=self._key.namespace))
        return [stored.decode_body() for stored in page.items]

    async def _charge(self, budget: Json) -> None:
        now = self._server.clock.now()
        if self._dry_run:
            disruption_budgets.charge(budget, self._key.name, now=now)
            return
        key = Key(_BUDGETS, self._key.namespace, budget["metadata"]["name"])
        is_there = await write_status(
            self._store, key, lambda current: disruption_budgets.charge(current, self._key.name, now=now), now=now
        )
        if not is_there:
            raise status_errors.not_found(key.name, group="policy", resource="poddisruptionbudgets")

    async def _delete_unready(self, pod: Json, budget: str) -> None:
        """Only as it was seen: a pod that has become ready meanwhile is the budget's business again."""
        try:
            await self._delete(only_as=None if self._names_version else pod)
        except status_errors.StatusError as refusal:
            if refusal.code == 409 and not self._names_version:
                raise disruption_budgets.build_unsettled_error(budget) from refusal
            raise

    async def _delete(self, *, only_as: Json | None) -> None:
        options = dict(self._options)
        if only_as is not None:
            version = only_as["metadata"]["resourceVersion"]
            options["preconditions"] = {**(options.get("preconditions") or {}), "resourceVersion": version}
        if not self._dry_run:
            marked = await self._mark(options.get("preconditions") or {})
            if (options.get("preconditions") or {}).get("resourceVersion"):
                options["preconditions"] = {**options["preconditions"], "resourceVersion": str(marked.revision)}
        await delete_object(self._server, self._call, options)

    async def _mark(self, preconditions: Json) -> Stored:
        """Set the condition with the reason of the eviction."""

        def change(current: Stored | None) -> Decision:
            if current is None:
                raise status_errors.not_found(self._key.name, group="", resource="pods")
            pod = current.decode_body()
            _check(pod, preconditions)
            set_condition(
                pod,
                "DisruptionTarget",
                now=self._server.clock.now(),
                reason="EvictionByEvictionAPI",
                message="Eviction API: evicting",
            )
            return Put(pod)

        marked = await self._store.update(self._key, change)
        assert marked is not None
        return marked


def _is_leaving(pod: Json) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in {"Succeeded", "Failed"} or bool(pod["metadata"].get("deletionTimestamp"))


def _is_idle(pod: Json) -> bool:
    return _is_leaving(pod) or (pod.get("status") or {}).get("phase") == "Pending"


def _check(pod: Json, preconditions: Json) -> None:
    metadata = pod["metadata"]
    for field, called, what in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        wanted, present = preconditions.get(field), metadata.get(field)
        if wanted and wanted != present:
            mismatch = f"the {called} in the precondition ({wanted}) does not match the {called} in record ({present})"
            why = f"{mismatch}. The object might have been {what}"
            raise status_errors.conflict(metadata["name"], group="", resource="Pod", why=why)
