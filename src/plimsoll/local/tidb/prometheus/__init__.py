"""The simulated Prometheus: scraped series and the query API."""
