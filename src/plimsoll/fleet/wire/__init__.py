"""Documents of the fleet manager outside of its database: what agents read and report, evaluate, export."""
