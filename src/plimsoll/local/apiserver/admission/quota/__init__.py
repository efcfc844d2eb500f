"""ResourceQuota admission: scopes, usage and reservations."""
