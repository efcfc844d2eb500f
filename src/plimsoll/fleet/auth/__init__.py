"""Tokens: keys of issuers, verification, and a small issuer of our own. Nothing here knows the routes of the API."""
