"""Which bins can be emptied into the others."""
