"""Values without I/O: what every other layer speaks in. Imports nothing of Plimsoll and nothing that waits."""
