"""Shared by all commands: connection options, output formats, logs, progress and times."""
