"""What must be added, or may be removed, so that these pods run at the least cost, and why. Pure.

`problem` turns a snapshot and a policy into arrays, `predicates` into rules over them, and `packing` places pods with
`plimsoll.solver`. `scaleup`, `scaledown` and `consolidation` make plans; `problem.verifier` replays scale-up plans with
`plimsoll.scheduling`; `explain` gives reasons.
"""
