"""Providers of data-plane clusters: what makes, bounds, empties and deletes them, behind one port."""
