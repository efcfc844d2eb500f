"""Reading what callers send: bodies, pages and searches. Every mistake becomes an error with a code."""
