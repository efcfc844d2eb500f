"""Commands for the whole product: `up`, `run`, `simulate`, `validate`, `doctor`, `pause`, `apiserver`."""
