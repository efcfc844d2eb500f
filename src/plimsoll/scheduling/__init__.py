"""Pure, per pod: every rule by which a pod may or may not run on a node.

Written for clarity; the fast engine is compared with it.
"""
