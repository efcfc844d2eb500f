"""What all commands share: connection options, output formats, logs, progress and times."""
