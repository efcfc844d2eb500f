"""The objects that kube-apiserver and kube-controller-manager create in a new cluster and in each new namespace."""
