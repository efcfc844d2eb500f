"""Packing of very many classes, merged into cells of similar size."""
