"""What runs things: clocks, the virtual loop, chance, the supervisor, back-off."""
