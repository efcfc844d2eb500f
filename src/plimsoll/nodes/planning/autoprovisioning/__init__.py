"""Node groups that do not exist yet: which machine types, labels and taints could serve pending pods."""
