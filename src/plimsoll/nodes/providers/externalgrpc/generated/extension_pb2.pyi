from plimsoll.nodes.providers.externalgrpc.generated import externalgrpc_pb2 as _externalgrpc_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AtomicIncreaseSizeRequest(_message.Message):
    __slots__ = ("id", "delta", "expected")
    ID_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    id: str
    delta: int
    expected: int
    def __init__(self, id: _Optional[str] = ..., delta: _Optional[int] = ..., expected: _Optional[int] = ...) -> None: ...

class AtomicIncreaseSizeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ForceDeleteNodesRequest(_message.Message):
    __slots__ = ("id", "nodes")
    ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    id: str
    nodes: _containers.RepeatedCompositeFieldContainer[_externalgrpc_pb2.ExternalGrpcNode]
    def __init__(self, id: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[_externalgrpc_pb2.ExternalGrpcNode, _Mapping]]] = ...) -> None: ...

class ForceDeleteNodesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Taint(_message.Message):
    __slots__ = ("key", "value", "effect")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    effect: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ...) -> None: ...

class MachineType(_message.Message):
    __slots__ = ("name", "capacity", "allocatable", "pricePerHour", "zones", "labels", "taints", "architecture", "capacityType")
    class CapacityEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    PRICEPERHOUR_FIELD_NUMBER: _ClassVar[int]
    ZONES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    CAPACITYTYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    capacity: _containers.ScalarMap[str, str]
    allocatable: _containers.ScalarMap[str, str]
    pricePerHour: float
    zones: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    taints: _containers.RepeatedCompositeFieldContainer[Taint]
    architecture: str
    capacityType: str
    def __init__(self, name: _Optional[str] = ..., capacity: _Optional[_Mapping[str, str]] = ..., allocatable: _Optional[_Mapping[str, str]] = ..., pricePerHour: _Optional[float] = ..., zones: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., taints: _Optional[_Iterable[_Union[Taint, _Mapping]]] = ..., architecture: _Optional[str] = ..., capacityType: _Optional[str] = ...) -> None: ...

class Naming(_message.Message):
    __slots__ = ("underscores", "longest")
    UNDERSCORES_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    underscores: bool
    longest: int
    def __init__(self, underscores: _Optional[bool] = ..., longest: _Optional[int] = ...) -> None: ...

class MachineTypesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MachineTypesResponse(_message.Message):
    __slots__ = ("machineTypes", "naming")
    MACHINETYPES_FIELD_NUMBER: _ClassVar[int]
    NAMING_FIELD_NUMBER: _ClassVar[int]
    machineTypes: _containers.RepeatedCompositeFieldContainer[MachineType]
    naming: Naming
    def __init__(self, machineTypes: _Optional[_Iterable[_Union[MachineType, _Mapping]]] = ..., naming: _Optional[_Union[Naming, _Mapping]] = ...) -> None: ...

class Blueprint(_message.Message):
    __slots__ = ("id", "machineType", "maxSize", "labels", "systemLabels", "taints", "zones", "extraResources")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class SystemLabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ExtraResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    MACHINETYPE_FIELD_NUMBER: _ClassVar[int]
    MAXSIZE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SYSTEMLABELS_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    ZONES_FIELD_NUMBER: _ClassVar[int]
    EXTRARESOURCES_FIELD_NUMBER: _ClassVar[int]
    id: str
    machineType: str
    maxSize: int
    labels: _containers.ScalarMap[str, str]
    systemLabels: _containers.ScalarMap[str, str]
    taints: _containers.RepeatedCompositeFieldContainer[Taint]
    zones: _containers.RepeatedScalarFieldContainer[str]
    extraResources: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., machineType: _Optional[str] = ..., maxSize: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., systemLabels: _Optional[_Mapping[str, str]] = ..., taints: _Optional[_Iterable[_Union[Taint, _Mapping]]] = ..., zones: _Optional[_Iterable[str]] = ..., extraResources: _Optional[_Mapping[str, str]] = ...) -> None: ...

class NewNodeGroupRequest(_message.Message):
    __slots__ = ("blueprint",)
    BLUEPRINT_FIELD_NUMBER: _ClassVar[int]
    blueprint: Blueprint
    def __init__(self, blueprint: _Optional[_Union[Blueprint, _Mapping]] = ...) -> None: ...

class NewNodeGroupResponse(_message.Message):
    __slots__ = ("nodeGroup", "nodeBytes")
    NODEGROUP_FIELD_NUMBER: _ClassVar[int]
    NODEBYTES_FIELD_NUMBER: _ClassVar[int]
    nodeGroup: _externalgrpc_pb2.NodeGroup
    nodeBytes: bytes
    def __init__(self, nodeGroup: _Optional[_Union[_externalgrpc_pb2.NodeGroup, _Mapping]] = ..., nodeBytes: _Optional[bytes] = ...) -> None: ...

class CreateNodeGroupRequest(_message.Message):
    __slots__ = ("blueprint",)
    BLUEPRINT_FIELD_NUMBER: _ClassVar[int]
    blueprint: Blueprint
    def __init__(self, blueprint: _Optional[_Union[Blueprint, _Mapping]] = ...) -> None: ...

class CreateNodeGroupResponse(_message.Message):
    __slots__ = ("id", "extraIds")
    ID_FIELD_NUMBER: _ClassVar[int]
    EXTRAIDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    extraIds: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., extraIds: _Optional[_Iterable[str]] = ...) -> None: ...

class DeleteNodeGroupRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class DeleteNodeGroupResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
