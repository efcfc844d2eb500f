"""Client of PD: members, stores and their JSON."""
