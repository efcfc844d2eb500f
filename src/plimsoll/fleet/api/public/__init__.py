"""Routes of users: Kafka requests, and what can be created where; and routes that describe the API."""
