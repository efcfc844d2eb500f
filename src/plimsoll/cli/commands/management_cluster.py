"""The part of `plimsoll doctor` about a management cluster of Cluster API that is not the autoscaled cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis import Finding
    from plimsoll.kube.requests.options import ClientSettings
    from plimsoll.nodes.config.policy import Policy


class ManagementCluster:
    """Checked with the kubeconfig that the user gives: the one of a running autoscaler is a file in its pod."""

    def __init__(
        self, kubeconfig: str, *, settings: ClientSettings, environment: Mapping[str, str], clock: Clock
    ) -> None:
        self._kubeconfig = kubeconfig
        self._settings = settings
        self._environment = environment
        self._clock = clock

    async def check(self, workload: Client, *, namespace: str) -> tuple[Finding, ...]:
        """Nothing if Cluster API is not used, or is in the autoscaled cluster."""
        from plimsoll.kube.diagnosis import Finding, Level
        from plimsoll.nodes.running_permissions import has_management_cluster, read_running_policy

        policy = await read_running_policy(workload, namespace)
        if self._kubeconfig:
            return await self._examine(policy)
        if policy is None or not has_management_cluster(policy):
            return ()
        return (
            Finding(
                check="management",
                level=Level.UNKNOWN,
                message="the node autoscaler uses a management cluster of Cluster API, which was not checked",
                fix="add --cloud-config with the kubeconfig of the management cluster",
            ),
        )

    async def _examine(self, policy: Policy | None) -> tuple[Finding, ...]:
        from msgspec.structs import replace

        from plimsoll.cli.shared.connection import Connection, open_client
        from plimsoll.kube.diagnosis import ExaminationOptions, Namespaces, Target, examine
        from plimsoll.nodes.running_permissions import find_management_requirements

        access = Connection(kubeconfig=self._kubeconfig).build_access(clock=self._clock)
        async with open_client(access, self._settings, clock=self._clock) as client:
            needed = await find_management_requirements(client, policy, self._environment)
            options = ExaminationOptions(
                requirements=(needed,),
                are_selected=True,
                namespaces=Namespaces(own=access.namespace),
                target=Target.from_access(access, await access.credentials.get_current()),
            )
            examination = await examine(client, options, clock=self._clock)
        return tuple(replace(finding, check=f"management.{finding.check}") for finding in examination.findings)
