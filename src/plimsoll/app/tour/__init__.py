"""The guided story: a whole chain on a world of its own, in which every step is checked."""
