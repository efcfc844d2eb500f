"""Reports of the fleet manager: metrics, one sentence per pass, and the journal."""
