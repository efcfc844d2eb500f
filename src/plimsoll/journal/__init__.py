"""The journal of decisions: plans with their reasons and outcomes, read by `plimsoll why` and `plimsoll journal`.

`entries` defines an entry, and `ports.Journal` its storage: `sqlite.SqliteJournal` when live, `memory.MemoryJournal`
under virtual time. `last_plans` is the ConfigMap of a cluster, `rendering` the output for users. `recordings` and
`anonymising` export a snapshot so that its plan can be computed again elsewhere. Subsystems pass `core.plans`; nothing
here depends on a subsystem.
"""
