"""Our engine per Kafka cluster: analyzer, executor and Cruise Control's API, in the process of the operator."""
