"""How many instances of which kind a TiDB cluster should have, and why. Pure.

`strategies` is what is asked, `snapshots` what is known, `deciding.plan` answers with `plans`. For the controller there
are `defaulting` and `validation` of a TidbClusterAutoScaler, `asking` (from it to a strategy) and `names`.
"""
