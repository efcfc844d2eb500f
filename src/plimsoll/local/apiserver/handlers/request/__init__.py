"""Parsing of one request: body, options, selectors, continue tokens."""
