"""The best content of a bin of every type at once: what a master program asks in each round of `columns`."""

import numpy as np

from plimsoll.solver.kernels import FloatVector, IntMatrix, IntVector, kernel
from plimsoll.solver.knapsacks import Shelf, Worth, best_content


@kernel()
def best_contents(shelf: Shelf, worth: Worth, left: IntVector, types: IntVector, contents: IntMatrix) -> FloatVector:
    """Write a content for each of the types; for each, a value that no content exceeds where no keys exclude any."""
    ceilings = np.zeros(types.size)
    prices = np.zeros(shelf.takes.shape[0])
    for at in range(types.size):
        _, ceiling = best_content(shelf, worth, types[at], left, contents[at], prices)
        ceilings[at] = ceiling
    return ceilings
