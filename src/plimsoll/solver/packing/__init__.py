"""Packing of items into new bins of many types."""
