"""Scenarios: a file tells a cluster's story, virtual time lets it happen, and the outcome is the same every time.

`scenario_files` reads, `worlds` builds what the file describes, `runs` takes the steps, `outcomes` tells how it ended,
`expectations` compares. docs/scenarios.md is the reference of the format.
"""
