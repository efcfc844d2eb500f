"""Access from inside a pod: the service account that the kubelet mounts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.access import Access, Tls
from plimsoll.kube.configuration.certificates import read_authorities
from plimsoll.kube.configuration.clusters import normalize_server_address
from plimsoll.kube.configuration.credentials import TokenFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORT: Final = "KUBERNETES_SERVICE_PORT"
ORIGIN: Final = "the service account of this pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """The pod we run in, if we run in one."""

    host: str
    port: str
    folder: Path

    @classmethod
    def detect(cls, environment: Mapping[str, str], *, folder: Path) -> Pod | None:
        host, port = environment.get(_HOST, ""), environment.get(_PORT, "")
        if not host or not port or not _is_file(folder / "token"):
            return None
        return cls(host=host, port=port, folder=folder)

    @staticmethod
    def explain_missing(environment: Mapping[str, str], *, folder: Path) -> str:
        """Why `detect` finds no pod, as the end of a sentence."""
        unset = [name for name in (_HOST, _PORT) if not environment.get(name)]
        problem = "this is not a pod with a service account"
        if len(unset) == 2:
            return problem
        if unset:
            return f"{problem}: {_PORT if unset[0] == _HOST else _HOST} is set, but {unset[0]} is not"
        return f"{problem}: {_HOST} is set, but {folder / 'token'} is not there (automountServiceAccountToken: false?)"

    def build_access(self, *, clock: Clock, namespace: str = "", pod_namespace: str = "") -> Access:
        """Access as the pod's service account, in the pod's namespace by default."""
        try:
            server = normalize_server_address(
                f"https://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"
            )
        except InvalidInput as error:
            raise InvalidInput(error.problem, path=f"{_HOST} and {_PORT}") from None
        return Access(
            server=server,
            credentials=TokenFile(str(self.folder / "token"), clock=clock),
            tls=self._read_tls(),
            namespace=namespace or pod_namespace or self._read_namespace() or "default",
            origin=ORIGIN,
        )

    def _read_tls(self) -> Tls:
        file = self.folder / "ca.crt"
        try:
            return Tls(ca_pem=read_authorities(file.read_bytes()), ca_file=str(file))
        except FileNotFoundError:
            return Tls()
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", path=str(file)) from None
        except InvalidInput as error:
            raise InvalidInput(error.problem, path=str(file)) from None

    def _read_namespace(self) -> str:
        try:
            return (self.folder / "namespace").read_text("utf-8").strip()
        except (OSError, ValueError):
            return ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above it that we may not enter
        return False
