"""How objects are shown: JSON, YAML, tables or metadata only, as the client's Accept header asks.

Handlers call `negotiate` before they do anything and `present_*` with the result, unless the form is plain JSON
(`Form.is_plain`): then the stored bytes are the answer. `printer_columns` and `json_paths` make the tables of custom
resources, `rows` and its `*_rows` those of built-in kinds. Nothing here reads the store.
"""

from plimsoll.local.apiserver.presentation.accept import Form, negotiate
from plimsoll.local.apiserver.presentation.bodies import (
    encoded,
    present_event,
    present_list,
    present_object,
    present_refusal,
)

__all__ = ["Form", "encoded", "negotiate", "present_event", "present_list", "present_object", "present_refusal"]
