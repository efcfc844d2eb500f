"""Commands that read the journal: `why` and `journal`."""
