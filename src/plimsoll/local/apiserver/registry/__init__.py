"""Create, update and delete of stored objects with strategies and admission: kube-apiserver's registry."""
