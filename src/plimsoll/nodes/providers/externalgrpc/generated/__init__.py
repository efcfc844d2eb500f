"""Messages of the provider protocols, made by protoc; nothing in here is written by hand."""
