"""Machine templates of the simulated cloud and the Node objects of its machines."""
