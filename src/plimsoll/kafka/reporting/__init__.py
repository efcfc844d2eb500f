"""What is reported about plans and executions: entries of the journal, metrics, tables."""
