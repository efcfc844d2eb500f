"""CustomResourceDefinition. The schema of a version is untyped JSON; `plimsoll.objects.schema` parses it."""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from msgspec import field

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import Json, Time, WireObject


class CustomResourceDefinitionNames(Wire):
    plural: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    kind: str = ""
    list_kind: str = ""
    categories: tuple[str, ...] = ()


class CustomResourceValidation(Wire):
    openapi_v3_schema: dict[str, Json] | None = field(name="openAPIV3Schema", default=None)


class CustomResourceSubresourceStatus(Wire):
    """Its presence enables `/status`; it has no fields."""


class CustomResourceSubresourceScale(Wire):
    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: str = ""


class CustomResourceSubresources(Wire):
    status: CustomResourceSubresourceStatus | None = None
    scale: CustomResourceSubresourceScale | None = None


class CustomResourceColumnDefinition(Wire):
    name: str = ""
    type: str = ""
    format: str = ""
    description: str = ""
    priority: Int64 = 0
    json_path: str = ""


class SelectableField(Wire):
    json_path: str = ""


class CustomResourceDefinitionVersion(Wire):
    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: CustomResourceValidation | None = None
    subresources: CustomResourceSubresources | None = None
    additional_printer_columns: tuple[CustomResourceColumnDefinition, ...] = ()
    selectable_fields: tuple[SelectableField, ...] = ()


class CustomResourceConversion(Wire):
    """Webhooks are not called; `strategy` shows whether one would be needed."""

    strategy: str = ""


class CustomResourceDefinitionSpec(Wire):
    group: str = ""
    scope: str = ""
    names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()
    versions: tuple[CustomResourceDefinitionVersion, ...] = ()
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool = False


class CustomResourceDefinitionCondition(Wire):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class CustomResourceDefinitionStatus(Wire):
    accepted_names: CustomResourceDefinitionNames = CustomResourceDefinitionNames()
    conditions: tuple[CustomResourceDefinitionCondition, ...] = ()
    stored_versions: tuple[str, ...] = ()


class CustomResourceDefinition(WireObject):
    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()
