"""Changes of a placement: moves, swaps and changes of leader that goals ask for."""
