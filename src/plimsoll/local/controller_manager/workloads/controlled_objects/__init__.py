"""What workloads have beyond the rules for controlled objects: revisions, deletion order, template hashes, status patches."""
