"""Scale-down planning: eligibility, drainability, PDBs, removal simulation and selection."""
