"""Strategies: the rules of each kind for preparing, validating and storing its objects, as in kube-apiserver."""
