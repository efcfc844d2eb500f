"""Response formats: JSON, YAML, tables or metadata only, as the client's Accept header requests.

Handlers call `negotiate` first and `encode_*` with the result, unless the form is plain JSON (`MediaForm.is_plain`):
then the stored bytes are the response. `custom_printers` and `json_paths` make the tables of custom resources,
`builtin_printers` and the `*_rows` modules those of built-in kinds. Nothing here reads the store.
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
