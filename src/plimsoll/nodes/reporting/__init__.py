"""Reports what each loop did and why: Events, metrics, status ConfigMap, journal and log line.

Everything here is derived from `LoopResult`, so that no two reports can disagree. Nothing here decides.
"""
