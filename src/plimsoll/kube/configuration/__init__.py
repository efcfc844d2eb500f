"""The choice of an API server and of credentials: kubeconfig files, exec plugins, the service account of a pod.

Commands call `find_access`; the resulting `Access` is all that `kube.http` needs. Nothing here connects to a server.
"""

from plimsoll.kube.configuration.loader import AccessOptions, LoaderContext, choose_access, find_access

__all__ = ["AccessOptions", "LoaderContext", "choose_access", "find_access"]
