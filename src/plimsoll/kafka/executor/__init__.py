"""The executor: moves replicas and leaders in batches, under throttles, and resumes after a crash."""
