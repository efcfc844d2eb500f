"""Objects of the Kafka operator as JSON, read into the model and written from it. Pure."""
