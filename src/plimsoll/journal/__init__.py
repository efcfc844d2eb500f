"""What was decided and why: plans kept with their reasons and outcomes, asked about by `plimsoll why` and `journal`.

`entries` is what is kept, `ports.Journal` how it is written and read: `sqlite.SqliteJournal` when live,
`memory.MemoryJournal` under virtual time. `last_plans` is the ConfigMap of a cluster, `rendering` what people see.
`recordings` and `anonymising` carry a snapshot away so that a plan can be made from it again elsewhere. Subsystems hand
in `core.plans`; nothing here knows any of them.
"""
