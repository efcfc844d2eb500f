"""The console: web pages that show what happens now, and why.

It reads caches and the journal and decides nothing. What it shows and what `plimsoll why` prints come from the same
functions.
"""
