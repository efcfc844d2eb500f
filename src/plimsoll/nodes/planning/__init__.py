"""What must be added, or may be removed, so that these pods run at the least cost, and why. Pure.

`world` is what is asked about, `offers` what could be added, `results` what is answered. `arrays` and `predicates` see
the cluster as numbers; the packing itself is `plimsoll.solver`; `verifying` replays a plan with `plimsoll.scheduling`.
"""
