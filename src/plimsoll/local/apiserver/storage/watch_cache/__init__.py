"""The watch cache: objects as they are now, their recent history, and the watchers that follow it."""
