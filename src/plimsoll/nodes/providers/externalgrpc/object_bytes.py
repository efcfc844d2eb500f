"""Encodes and decodes nodes and pods in messages. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.objects.protobuf.decoding import decode_message
from plimsoll.objects.protobuf.encoding import encode_message
from plimsoll.objects.protobuf.messages import CORE
from plimsoll.objects.protobuf.wire import InvalidProtobuf

if TYPE_CHECKING:
    from plimsoll.objects.api.meta import WireObject

T = TypeVar("T", bound="WireObject")

_NODE: Final = f"{CORE}Node"
_POD: Final = f"{CORE}Pod"


def encode_node(node: Node) -> bytes:
    return _encode(_NODE, node)


def encode_pod(pod: Pod) -> bytes:
    return _encode(_POD, pod)


def decode_node(content: bytes) -> Node:
    """Raises `InvalidProtobuf` if the bytes are not a node."""
    return _read(_NODE, Node, content)


def decode_pod(content: bytes) -> Pod:
    """Raises `InvalidProtobuf` if the bytes are not a pod."""
    return _read(_POD, Pod, content)


def _encode(name: str, value: WireObject) -> bytes:
    # Through JSON, where times are texts and tuples are lists.
    return encode_message(name, msgspec.json.decode(msgspec.json.encode(value)))


def _read(name: str, struct: type[T], content: bytes) -> T:
    found = convert_object(struct, decode_message(name, content).value)
    if isinstance(found, BadObject):
        raise InvalidProtobuf(found.problem)
    return found
