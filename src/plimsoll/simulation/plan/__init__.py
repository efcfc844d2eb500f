"""Input of `plimsoll plan`: files, node groups, requests and checks."""
