"""Clusters to examine: the embedded server with its first objects, and users who may do little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.cli.commands.requirements import select_requirements
from plimsoll.kube.client import Client
from plimsoll.kube.diagnosis import ExaminationOptions, Namespaces, examine
from plimsoll.local.apiserver.bootstrap.install import install_bootstrap_objects
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun
from tests.kube.embedded_api import UNLIMITED, EmbeddedApi, ScriptedTransport
from tests.local.apiserver.builders import ADMIN, GUEST, START

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from plimsoll.kube.diagnosis import Examination, Finding, Permission, Target
    from plimsoll.kube.requests.options import ClientSettings
    from plimsoll.kube.transport import Request, Response, Transport


def examination_options(controllers: Collection[str] = (), **options: Any) -> ExaminationOptions:
    """Of these controllers; without names, of all."""
    return ExaminationOptions(requirements=select_requirements(controllers), are_selected=bool(controllers), **options)


class InterceptingTransport:
    """Stands between a client and a server; whoever inherits changes what passes."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def send(self, call: Request) -> Response:
        return await self.inner.send(call)

    async def aclose(self) -> None:
        await self.inner.aclose()


RBAC = "/apis/rbac.authorization.k8s.io/v1"


class DiagnosedCluster(EmbeddedApi):
    """A fresh cluster as `plimsoll apiserver` starts one: roles of Kubernetes, namespaces, no controllers."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.do(install_bootstrap_objects(self.server.server, ca_certificate=""))
        return self

    def examined(
        self,
        *controllers: str,
        token: str = ADMIN,
        namespaces: Namespaces = Namespaces(),  # noqa: B008 - an immutable value
        through: Callable[[Transport], Transport] = lambda transport: transport,
        invocation: str = "plimsoll doctor -o json",
        environment: dict[str, str] | None = None,
    ) -> Examination:
        client = self.new_client(token=token, through=through)
        options = examination_options(
            controllers, namespaces=namespaces, invocation=invocation, environment=environment or {}
        )
        return self.do(examine(client, options, clock=self.clock))

    def service_account(self, name: str = "plimsoll", namespace: str = "kube-system") -> str:
        """The token of a new service account, who may do nothing yet."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.made(path, {"metadata": {"name": name}})
        return str(self.made(f"{path}/{name}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"])

    def apply(self, *manifests: dict[str, Any]) -> None:
        for manifest in manifests:
            namespace = manifest["metadata"].get("namespace", "")
            collection = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
            self.made(f"{collection}/{manifest['kind'].lower()}s", manifest)

    def define(self, plural: str, group: str, *versions: str) -> None:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        listed = [
            {"name": version, "served": True, "storage": index == 0, "schema": schema}
            for index, version in enumerate(versions)
        ]
        names = {"plural": plural, "kind": plural.capitalize(), "singular": plural}
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": listed},
        }
        self.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
        self.run.advance_by(10)


def found(examination: Examination, check: str) -> Finding:
    (finding,) = [finding for finding in examination.findings if finding.check == check]
    return finding


def questions(permissions: Iterable[Permission], namespaces: Namespaces) -> set[tuple[str, ...]]:
    return {
        (question.verb, question.target, question.namespace, question.name)
        for permission in permissions
        for question in permission.list_questions(namespaces)
    }


def examined_script(
    *script: Response | Exception | Callable[[Request], Response],
    target: Target,
    controllers: tuple[str, ...] = ("kubelet",),
    settings: ClientSettings = UNLIMITED,
) -> Examination:
    """The examination of a server that answers from a script."""
    with VirtualRun(start=START) as run:
        client = Client(ScriptedTransport(*script), clock=run.clock, entropy=SeededEntropy("script"), settings=settings)
        return run.run_until(examine(client, examination_options(controllers, target=target), clock=run.clock))


__all__ = ["ADMIN", "GUEST", "DiagnosedCluster", "InterceptingTransport", "examined_script", "found", "questions"]
