"""What workloads need of controlled objects beyond the common rules: revisions, deletion order, hashes, patches."""
