"""The embedded Kubernetes API server: what makes Plimsoll start with one command, and what every test runs on."""
