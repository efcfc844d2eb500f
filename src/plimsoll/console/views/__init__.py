"""What the pages show, as plain JSON. Scripts may read the same routes."""
