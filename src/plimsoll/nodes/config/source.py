"""The source of the configuration in each loop iteration: flags, then the program's ConfigMap, which is read again.

`ConfigSource` is the port of the loop. `ConfigMapConfig` reads a mapping (flags, or a scenario's options, which may
change) and ConfigMaps. A ConfigMap that cannot be read changes nothing: the last configuration stays in force, and the
problem is reported (docs/design/nodes.md 5.1, 6.7, 10).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.core.plans import Reason
from plimsoll.kube.requests.options import Selection
from plimsoll.nodes.config.expander_priorities import CONFIG_MAP as PRIORITIES
from plimsoll.nodes.config.expander_priorities import KEY as PRIORITIES_KEY
from plimsoll.nodes.config.expander_priorities import read_priorities
from plimsoll.nodes.config.flags import InvalidOptions
from plimsoll.nodes.config.options import find_flag, read_options
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.codec.manifests import read_documents
from plimsoll.operator.pause import read_pause_annotation
from plimsoll.operator.program_config import CONFIG_MAP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.informer.informer import Informer
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.group_names import Naming
    from plimsoll.nodes.model.prices import Overlay

log = structlog.get_logger(__name__)

OPTIONS_KEY: Final = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveConfig:
    """The configuration of one loop iteration."""

    policy: Policy
    paused: str = ""
    problems: tuple[str, ...] = ()
    """Parts of the configuration that could not be used."""
    priority_problem: Reason | None = None
    """What is wrong with the priority expander's ConfigMap; then no group is preferred."""


class ConfigSource(Protocol):
    """Provides the configuration at the start of every loop iteration."""

    async def wait_until_synced(self) -> None:
        """Return once the configuration from before the start is known, a pause above all."""
        ...

    def get_current(self) -> ActiveConfig: ...


class ConfigMapConfig:
    """Options of a mapping that may change, overridden by ConfigMaps of the cluster."""

    def __init__(
        self,
        options: Mapping[str, Any],
        informers: SharedInformerFactory,
        *,
        naming: Naming | None = None,
        overlay: Mapping[str, Overlay] | None = None,
    ) -> None:
        self._options = options
        # Each by its name: the program needs no right to read other ConfigMaps of its namespace.
        self._namespace = str(options.get("namespace", "kube-system"))
        self._ours = _watch_named(CONFIG_MAP, informers, namespace=self._namespace)
        self._preferred = _watch_named(PRIORITIES, informers, namespace=self._namespace)
        self._naming = naming
        self._overlay = overlay or {}
        self._read: tuple[dict[str, Any], Policy] | None = None
        self._reported: dict[str, None] = {}

    async def wait_until_synced(self) -> None:
        await self._ours.wait_until_synced()
        await self._preferred.wait_until_synced()

    def get_current(self) -> ActiveConfig:
        problems: list[str] = []
        policy = self._read_policy(problems)
        ours = self._ours.cache.get(CONFIG_MAP, self._namespace)
        paused = "" if ours is None else read_pause_annotation(ours.metadata.annotations)
        priorities, priority_problem = self._read_priorities(problems)
        for problem in problems:
            if problem not in self._reported:
                log.warning("configuration.not_used", problem=problem)
        self._reported = dict.fromkeys(problems)
        chosen = replace(policy, priorities=priorities, naming=self._naming, overlay=self._overlay)
        return ActiveConfig(
            policy=chosen,
            paused=paused,
            problems=tuple(problems),
            priority_problem=priority_problem,
        )

    def _read_policy(self, problems: list[str]) -> Policy:
        """The policy of flags and the ConfigMap, which overrides flags."""
        known = self._read
        given = dict(self._options)
        written = self._ours.cache.get(CONFIG_MAP, self._namespace)
        try:
            combined = _override(given, read_config_map_options(written))
            if known is None or known[0] != combined:
                known = (combined, read_options(combined))
        except (InvalidInput, InvalidOptions) as error:
            if written is None or not written.data.get(OPTIONS_KEY):
                raise
            problems.append(f"ConfigMap {self._namespace}/{CONFIG_MAP}: {error}")
            known = known or (given, read_options(given))
        self._read = known
        return known[1]

    def _read_priorities(self, problems: list[str]) -> tuple[dict[int, tuple[str, ...]], Reason | None]:
        written = self._preferred.cache.get(PRIORITIES, self._namespace)
        text = "" if written is None else written.data.get(PRIORITIES_KEY, "")
        if not text:
            return {}, None
        try:
            documents = [document for _, document in read_documents(text.encode(), source=PRIORITIES)]
            return (read_priorities(documents[0]) if documents else {}), None
        except InvalidInput as error:
            problem = f"ConfigMap {self._namespace}/{PRIORITIES}: {error}"
            problems.append(problem)
            return {}, Reason(code="PriorityConfigMapInvalid", message=problem)


def _watch_named(name: str, informers: SharedInformerFactory, *, namespace: str) -> Informer[ConfigMap]:
    return informers.get_informer(ConfigMap, Selection(namespace=namespace, fields=f"metadata.name={name}"))


def _override(given: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """Any spelling overrides: `enable-node-autoprovisioning` in the ConfigMap replaces `node-autoprovisioning`."""
    names = {flag.name for flag in map(find_flag, added) if flag is not None}
    kept = {name: value for name, value in given.items() if (flag := find_flag(name)) is None or flag.name not in names}
    return {**kept, **added}


def read_config_map_options(written: ConfigMap | None) -> dict[str, Any]:
    """The node options of the program's ConfigMap; raises `InvalidInput` if they cannot be read."""
    text = "" if written is None else written.data.get(OPTIONS_KEY, "")
    if not text.strip():
        return {}
    documents = [document for _, document in read_documents(text.encode(), source=CONFIG_MAP)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("must hold one mapping of flag names to values", path=OPTIONS_KEY)
    return {str(key): value for key, value in documents[0].items()}
