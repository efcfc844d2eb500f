"""The runtime: clocks, the virtual loop, entropy, the supervisor, back-off, SQLite files."""
