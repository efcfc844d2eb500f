"""External services that recommend the size of a group."""
