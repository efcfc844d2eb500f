"""`ProviderService`: answers the calls of the externalgrpc protocol with any of our providers.

Messages in, messages out; `server` listens on a port. The caller may be an upstream Cluster Autoscaler, which takes
every group that it sees for an autoscaled one, so only autoscaled groups are shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.protobuf.any_pb2 import Any as AnyMessage

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.nodes.model.call_outcomes import CallFailed, NotImplementedByProvider
from plimsoll.nodes.providers.externalgrpc import mapping
from plimsoll.nodes.providers.externalgrpc.codes import Code, RpcFailed, to_error
from plimsoll.nodes.providers.externalgrpc.object_bytes import decode_pod, encode_node
from plimsoll.nodes.providers.values import GroupOptions, ProviderFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeVar

    from plimsoll.nodes.providers.externalgrpc.methods import Method
    from plimsoll.nodes.providers.ports import Group, Provider

    T = TypeVar("T")
    Fields = Mapping[str, Any]

# For a caller that says no times of its own; Cluster Autoscaler's.
_DEFAULT_OPTIONS: Final = GroupOptions(
    utilization_threshold=0.5,
    gpu_utilization_threshold=0.5,
    unneeded_s=600.0,
    unready_s=1200.0,
    provision_s=900.0,
    startup_s=900.0,
)


class ProviderService:
    """Serves one provider to any client."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._answers: Mapping[str, Callable[[Any], Awaitable[Fields]]] = {
            "NodeGroups": self._list_node_groups,
            "NodeGroupForNode": self._find_node_group,
            "PricingNodePrice": self._get_node_price,
            "PricingPodPrice": self._get_pod_price,
            "GPULabel": self._get_gpu_label,
            "GetAvailableGPUTypes": self._get_gpu_types,
            "Cleanup": self._cleanup,
            "Refresh": self._refresh,
            "NodeGroupTargetSize": self._get_target_size,
            "NodeGroupIncreaseSize": self._increase_size,
            "NodeGroupDeleteNodes": self._delete_nodes,
            "NodeGroupDecreaseTargetSize": self._decrease_target_size,
            "NodeGroupNodes": self._list_nodes,
            "NodeGroupTemplateNodeInfo": self._get_template,
            "NodeGroupGetOptions": self._get_options,
            "AtomicIncreaseSize": self._increase_size_atomically,
            "ForceDeleteNodes": self._force_delete_nodes,
            "MachineTypes": self._get_machine_types,
            "NewNodeGroup": self._build_node_group,
            "CreateNodeGroup": self._create_node_group,
            "DeleteNodeGroup": self._delete_node_group,
        }

    async def answer(self, method: Method, request: Any) -> Any:
        """Raises `RpcFailed`."""
        try:
            return method.response(**await self._answers[method.name](request))
        except InvalidInput as error:
            raise RpcFailed(Code.INVALID_ARGUMENT, str(error)) from error
        except ProviderFailed as error:
            raise RpcFailed(Code.UNAVAILABLE, str(error)) from error
        except RpcFailed:
            raise
        except PlimsollError as error:
            raise RpcFailed(Code.INTERNAL, str(error)) from error

    # ---- the provider

    async def _list_node_groups(self, _request: Any) -> Fields:
        groups = await self._provider.node_groups()
        return {"nodeGroups": [mapping.to_group_message(group) for group in groups if _is_shown(group)]}

    async def _find_node_group(self, request: Any) -> Fields:
        group = await self._provider.node_group_for_node(mapping.from_node_message(request.node))
        shown = group is not None and _is_shown(group)
        return {"nodeGroup": mapping.to_group_message(group) if group is not None and shown else {"id": ""}}

    async def _get_node_price(self, request: Any) -> Fields:
        price = await self._provider.node_price(
            mapping.from_node_message(request.node), mapping.from_span_message(request)
        )
        if price is None:
            raise RpcFailed(Code.NOT_FOUND, f"the price of node {request.node.name} is unknown")
        return {"price": _require(price)}

    async def _get_pod_price(self, request: Any) -> Fields:
        return {
            "price": _require(
                await self._provider.pod_price(decode_pod(request.pod_bytes), mapping.from_span_message(request))
            )
        }

    async def _get_gpu_label(self, _request: Any) -> Fields:
        return {"label": await self._provider.gpu_label()}

    async def _get_gpu_types(self, _request: Any) -> Fields:
        return {"gpuTypes": {name: AnyMessage() for name in await self._provider.get_available_gpu_types()}}

    async def _cleanup(self, _request: Any) -> Fields:
        """The client exits; the provider stays for the next client."""
        return {}

    async def _refresh(self, _request: Any) -> Fields:
        await self._provider.refresh()
        return {}

    # ---- groups

    async def _get_target_size(self, request: Any) -> Fields:
        return {"targetSize": await (await self._get_group(request.id)).target_size()}

    async def _increase_size(self, request: Any) -> Fields:
        _check(request.delta > 0, f"size increase must be positive, is {request.delta}")
        group = await self._get_group(request.id)
        return _check_outcome(await group.increase_size(request.delta, expected=await group.target_size()))

    async def _decrease_target_size(self, request: Any) -> Fields:
        _check(request.delta < 0, f"size decrease must be negative, is {request.delta}")
        group = await self._get_group(request.id)
        return _check_outcome(await group.decrease_target_size(request.delta, expected=await group.target_size()))

    async def _delete_nodes(self, request: Any) -> Fields:
        group = await self._get_group(request.id)
        return _check_outcome(await group.delete_nodes([mapping.from_node_message(node) for node in request.nodes]))

    async def _list_nodes(self, request: Any) -> Fields:
        instances = await (await self._get_group(request.id)).nodes()
        return {"instances": [mapping.to_instance_message(instance) for instance in instances]}

    async def _get_template(self, request: Any) -> Fields:
        return {"nodeBytes": encode_node(_require(await (await self._get_group(request.id)).template_node_info()))}

    async def _get_options(self, request: Any) -> Fields:
        defaults = mapping.from_options_message(request.defaults, _DEFAULT_OPTIONS)
        options = _require(await (await self._get_group(request.id)).get_options(defaults))
        return {"nodeGroupAutoscalingOptions": mapping.to_options_message(options)}

    # ---- the extension

    async def _increase_size_atomically(self, request: Any) -> Fields:
        group = await self._get_group(request.id)
        if not await group.can_increase_atomically():
            raise RpcFailed(Code.UNIMPLEMENTED, f"node group {group.id} does not grow atomically")
        _check(request.delta > 0, f"size increase must be positive, is {request.delta}")
        return _check_outcome(await group.atomic_increase_size(request.delta, expected=request.expected))

    async def _force_delete_nodes(self, request: Any) -> Fields:
        group = await self._get_group(request.id)
        return _check_outcome(
            await group.force_delete_nodes([mapping.from_node_message(node) for node in request.nodes])
        )

    async def _get_machine_types(self, _request: Any) -> Fields:
        types = _require(await self._provider.get_machine_types())
        naming = mapping.to_naming_message(self._provider.naming)
        return {
            "machineTypes": [mapping.to_machine_type_message(machine_type) for machine_type in types],
            "naming": naming,
        }

    async def _build_node_group(self, request: Any) -> Fields:
        group = await self._build_theoretical(request)
        template = await group.template_node_info()
        known = b"" if isinstance(template, NotImplementedByProvider) else encode_node(template)
        return {"nodeGroup": mapping.to_group_message(group), "nodeBytes": known}

    async def _create_node_group(self, request: Any) -> Fields:
        created = _require(await (await self._build_theoretical(request)).create())
        return {"id": created.id, "extraIds": created.extra_ids}

    async def _delete_node_group(self, request: Any) -> Fields:
        """A group that does not exist was deleted already."""
        for group in await self._provider.node_groups():
            if group.id == request.id:
                return _check_outcome(await group.delete())
        return {}

    # ---- inside

    async def _get_group(self, name: str) -> Group:
        for group in await self._provider.node_groups():
            if group.id == name and _is_shown(group):
                return group
        raise RpcFailed(Code.NOT_FOUND, f"there is no node group {name}")

    async def _build_theoretical(self, request: Any) -> Group:
        return _require(await self._provider.new_node_group(mapping.from_blueprint_message(request.blueprint)))


def _is_shown(group: Group) -> bool:
    return group.autoscaled or bool(group.autoprovisioned)


def _check(is_right: bool, problem: str) -> None:
    if not is_right:
        raise RpcFailed(Code.INVALID_ARGUMENT, problem)


def _require(answer: T | CallFailed | NotImplementedByProvider) -> T:
    """The answer; a failure becomes an error on the wire."""
    if isinstance(answer, NotImplementedByProvider):
        raise RpcFailed(Code.UNIMPLEMENTED, f"the provider has no {answer.call}")
    if isinstance(answer, CallFailed):
        raise to_error(answer)
    return answer


def _check_outcome(outcome: Any) -> Fields:
    _require(outcome)
    return {}
