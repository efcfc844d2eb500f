"""How objects are shown: JSON, YAML, tables or metadata only, as the client's Accept header asks.

Handlers call `negotiate` before they do anything and `present_*` with the result, unless the form is plain JSON
(`MediaForm.is_plain`): then the stored bytes are the answer. `printer_columns` and `json_paths` make the tables of
custom resources, `rows` and its `*_rows` those of built-in kinds. Nothing here reads the store.
"""

from plimsoll.local.apiserver.presentation.encoding import (
    encode,
    encode_error,
    encode_event,
    encode_list,
    encode_object,
)
from plimsoll.local.apiserver.presentation.negotiation import MediaForm, negotiate

__all__ = ["MediaForm", "encode", "encode_error", "encode_event", "encode_list", "encode_object", "negotiate"]
