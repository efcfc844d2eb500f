"""The configuration of the fleet manager: its files, read strictly, with all mistakes at once and their paths."""
