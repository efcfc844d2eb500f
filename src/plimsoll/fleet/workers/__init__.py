"""Workers of the fleet manager: each reads rows, decides by pure rules, and writes rows while it holds its lease."""
