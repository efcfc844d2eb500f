"""Values without I/O, shared by all layers. Imports no other part of Plimsoll, and nothing that waits."""
