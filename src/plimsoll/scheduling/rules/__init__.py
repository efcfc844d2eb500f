"""Scheduling rules, one module per kube-scheduler plugin."""
