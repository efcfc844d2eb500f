"""Field paths and sets of field paths, as `managedFields` stores them."""
