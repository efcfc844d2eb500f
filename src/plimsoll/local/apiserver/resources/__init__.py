"""The registry of served resources, built-in and custom."""
