"""Recordings of the input of a plan, so that the plan can be made again elsewhere: `plimsoll record` and `replay`.

`snapshots`, `policies` and `scale_down_state` convert the three inputs of a plan to plain JSON and back, `anonymising`
replaces names, `replay` makes the plan. The container is `journal.recordings`. All modules are pure.
"""
