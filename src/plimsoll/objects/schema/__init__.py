"""Structural schemas of custom resources, treated as a real API server treats them.

`plimsoll validate` and the embedded API server use `definitions.compile_definition`; validation of built-in kinds uses
`field_errors`. Everything here is pure: JSON values in, values out, no clock, no I/O.
docs/reference/schemas.md explains how the parts work together and where they differ from the real server on purpose.
"""
