"""The simulated PD: stores, region scheduling and its HTTP API."""
