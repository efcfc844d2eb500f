"""Who may see the console: a one-time code, a cookie, a token."""
