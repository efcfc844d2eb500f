"""The embedded kube-controller-manager, one folder per controller."""
