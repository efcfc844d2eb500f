"""Scale-up planning: from pending pods and scale-up options to a verified plan."""
