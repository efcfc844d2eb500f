"""Typed values for server-side apply: schemas, comparing, merging and removing fields."""
