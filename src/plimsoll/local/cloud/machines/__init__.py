"""Machine shapes of the simulated cloud and the Node objects they register."""
