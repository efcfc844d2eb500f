"""The three patch formats that are plain JSON in, JSON out: RFC 6902, RFC 7386 and strategic merge.

The request handlers call `json_patch.apply_json_patch`, `merge_patch.apply_merge_patch` and
`strategic_merge.apply_strategic_merge_patch`; server-side apply is the neighbour package `apply`. Everything here is a
pure function on values that `objects.schema.json_values.take_over` has let in (bounded nesting). No input is ever
changed: a result is a new value that shares the parts that stayed as they were.
"""
