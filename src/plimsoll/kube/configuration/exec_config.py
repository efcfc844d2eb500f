"""The `exec` section of a user: which plugin to run, and how. Read and checked here; `exec_plugin` runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.configuration.clusters import Cluster
    from plimsoll.kube.configuration.sections import Section

GROUP: Final = "client.authentication.k8s.io"
V1: Final = f"{GROUP}/v1"
V1BETA1: Final = f"{GROUP}/v1beta1"


class InteractiveMode(StrEnum):
    """Whether a plugin may ask the user at the terminal."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecConfig:
    """The configuration of one plugin."""

    place: str
    """The path of the section, for messages."""
    api_version: str
    command: str
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    interactive_mode: InteractiveMode = InteractiveMode.IF_AVAILABLE
    install_hint: str = ""
    cluster_info: Mapping[str, Any] | None = field(default=None, repr=False)
    """The cluster information passed to the plugin; None if its entry does not ask for it."""


def read_exec_config(section: Section, cluster: Cluster) -> ExecConfig:
    """Read and validate the section."""
    api_version = _read_api_version(section)
    return ExecConfig(
        place=section.get_path(""),
        api_version=api_version,
        command=_read_command(section),
        arguments=section.get_texts("args"),
        environment=_read_environment(section),
        interactive_mode=_read_interactive_mode(section, api_version),
        install_hint=_remove_control_characters(section.get_text("installHint")),
        cluster_info=cluster.to_exec_cluster() if section.get_flag("provideClusterInfo") else None,
    )


def _read_api_version(section: Section) -> str:
    written = section.get_text("apiVersion")
    if written in {V1, V1BETA1}:
        return written
    wanted = f"must be {V1} or {V1BETA1}"
    if written == f"{GROUP}/v1alpha1":
        raise section.build_error("apiVersion", f"v1alpha1 is no longer supported, it {wanted}: use a newer plugin")
    raise section.build_error(
        "apiVersion", f'{wanted}, and is "{written}"' if written else f"must be given: it {wanted}"
    )


def _read_command(section: Section) -> str:
    """A name is looked up in PATH; anything with a slash is a path relative to the folder of the file."""
    written = section.get_text("command")
    if not written:
        raise section.build_error("command", "must be given: the plugin to run")
    return section.get_file_path("command") if "/" in written else written


def _read_environment(section: Section) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable in section.list_sections("env"):
        name = variable.get_text("name")
        if not name or "=" in name:
            raise variable.build_error("name", "must be the name of an environment variable")
        found[name] = variable.get_text("value")
    return found


def _read_interactive_mode(section: Section, api_version: str) -> InteractiveMode:
    written = section.get_text("interactiveMode")
    if not written and api_version == V1BETA1:
        return InteractiveMode.IF_AVAILABLE
    try:
        return InteractiveMode(written)
    except ValueError:
        wanted = f"must be {', '.join(InteractiveMode)}".replace(", Always", " or Always")
        problem = f'{wanted}, and is "{written}"' if written else f"must be given with {V1}: it {wanted}"
        raise section.build_error("interactiveMode", problem) from None


def _remove_control_characters(text: str) -> str:
    """A hint is shown on a terminal, which interprets escape sequences."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text).strip()
