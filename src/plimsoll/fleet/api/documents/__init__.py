"""The documents of the API: what it answers and which bodies it reads, as pydantic models."""
