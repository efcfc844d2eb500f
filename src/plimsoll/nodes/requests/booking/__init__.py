"""Booked capacity: reservations for provisioned requests, their consumers, and the nodes that arrived."""
