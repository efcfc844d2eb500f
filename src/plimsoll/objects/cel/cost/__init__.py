"""CEL cost: static estimates, runtime costs and budgets."""
