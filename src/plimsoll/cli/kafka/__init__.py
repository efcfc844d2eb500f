"""`plimsoll kafka …`."""
