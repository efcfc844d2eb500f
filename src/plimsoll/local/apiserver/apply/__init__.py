"""Server-side apply and the book-keeping behind it: who owns which field of an object (`metadata.managedFields`).

The request handlers use `field_management.FieldManagement` for every write (create, update and patch track ownership
too), `scale.ScaleOwnership` for the scale subresource and `schemas.TypeSchema` to say what a kind looks like. The parts
below follow Kubernetes' own division: sets of field paths (`field_sets`), values walked beside their type (`comparing`,
`merging`, `removing`, `owning`, `checking`), ownership (`updating`) and its written form (`managed_entries`).

Everything is pure: time is passed in, inputs are never changed, results share what stayed the same. Values must have
been let in by `objects.schema.json_values.take_over`, which bounds their nesting; so the walks may recurse.
"""
