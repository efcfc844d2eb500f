"""A server that speaks Cruise Control's REST API: `cccli`, Strimzi's operator and our own operator use it."""
