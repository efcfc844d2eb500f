"""Booked capacity: reservations for provisioned requests, who consumes them, and which nodes arrived."""
