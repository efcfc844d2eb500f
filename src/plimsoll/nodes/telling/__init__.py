"""Says what turns did and why: Events, metrics, the status ConfigMap, the journal, and one sentence in the log.

Everything here is made from `turns.Turn`, so that no two of them can tell different stories. Nothing here decides.
"""
