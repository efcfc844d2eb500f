"""Client of PD: access, members, stores and their JSON."""
