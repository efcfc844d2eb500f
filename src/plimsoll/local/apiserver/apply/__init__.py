"""Server-side apply and field management: which manager owns which field of an object (`metadata.managedFields`).

The request handlers use `field_manager.FieldManager` for every write (create, update and patch track ownership too),
`scale.ScaleOwnership` for the scale subresource and `typed.schemas.TypeSchema` for the type of a kind. The division
follows structured-merge-diff: sets of field paths (`fieldpath`), typed values (`typed`), ownership (`updater`) and its
stored form (`managed_fields`).

Everything is pure: time is passed in, inputs are never changed, results share what stayed the same. Values must have
passed `objects.schema.json_values.take_over`, which bounds their nesting; so the walks may recurse.
"""
