"""The PD planning API: client, service, and collecting of its input."""
