"""The ports of `plimsoll up`, all relative to one base, and its data: checked before anything is installed or started.

`make up` runs this module with the words of UP before it installs anything, so it imports the standard library only.
The base that was chosen last is kept in the data directory.
"""

from __future__ import annotations

import fcntl
import shlex
import socket
import sys
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
DEFAULT_PORT_BASE: Final = 6443
HIGHEST_PORT_BASE: Final = 59_599
"""The highest port, that of the simulated PD, lies 5,936 above the base."""
API: Final = "the Kubernetes API"
CONSOLE: Final = "the console"
PAGES: Final = "metrics and health"
CRUISE_CONTROL: Final = "Cruise Control's API of Kafka clusters"
PLANNER: Final = "the TiDB planner"
PD: Final = "the simulated PD"
FLEET: Final = "the fleet API"
OCM: Final = "the simulated OCM"
OFFSETS: Final = {
    API: 0,
    FLEET: 8000 - 6443,
    CONSOLE: 8080 - 6443,
    PAGES: 8085 - 6443,
    CRUISE_CONTROL: 9091 - 6443,
    PLANNER: 9092 - 6443,
    OCM: 9100 - 6443,
    PD: 12379 - 6443,
}
"""The distance of each port from the base."""
DEFAULT_DATA: Final = Path(".plimsoll")
_BASE_FILE: Final = "port-base"
_LOCK_FILE: Final = "objects.lock"
"""The lock that the store of the API server holds."""
_MOST_DIGITS: Final = 32
_BASE_OPTION: Final = "--port-base"
_DATA_OPTION: Final = "--data"
_STEP: Final = 1_000


def find_busy_ports(port_base: int) -> dict[int, str]:
    """The ports that cannot be had now, with their purposes. With base 0 the system chooses free ports."""
    if not port_base:
        return {}
    return {port_base + offset: purpose for purpose, offset in OFFSETS.items() if not _can_be_bound(port_base + offset)}


def _can_be_bound(port: int) -> bool:
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((HOST, port))
            trying.listen()
        except OSError:
            return False
    return True


def find_free_base(port_base: int) -> int:
    """The next base whose ports are all free; 0, by which the system chooses them, if there is none."""
    for base in range(port_base + _STEP, HIGHEST_PORT_BASE, _STEP):
        if not find_busy_ports(base):
            return base
    return 0


def describe_busy_ports(busy: dict[int, str], words: list[str], free_base: int) -> str:
    """All busy ports, and the commands that use others. `words` are the other options that the user gave."""
    named = ", ".join(f"{port} ({purpose})" for port, purpose in busy.items())
    subject, verb = ("port", "is") if len(busy) == 1 else ("ports", "are")
    options = shlex.join([*_without_option(words, _BASE_OPTION), _BASE_OPTION, str(free_base)])
    return (
        f"{subject} {named} {verb} in use, perhaps by another plimsoll up; stop it, or use other ports:\n"
        f'  make up UP="{options}"\n'
        f"  plimsoll up {options}"
    )


def _without_option(words: list[str], *options: str) -> list[str]:
    """The words without options and their values."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in options:
            next(rest, None)
        elif word.partition("=")[0] not in options:
            kept.append(word)
    return kept


def describe_running(data: Path, words: list[str], port_base: int) -> str:
    """That the cluster in a data directory runs already, and what to do; empty: it does not, as far as can be seen."""
    process = _find_lock_holder(data / _LOCK_FILE)
    if process is None:
        return ""
    other = [*_without_option(words, _BASE_OPTION, _DATA_OPTION), _DATA_OPTION, f"{data}-2"]
    free_base = find_free_base(port_base) if port_base else 0
    options = shlex.join([*other, _BASE_OPTION, str(free_base)])
    return (
        f"{data}: the data directory is in use by process {process}: its cluster runs already.\n"
        f"Use it (export KUBECONFIG={shlex.quote(str(data / 'kubeconfig'))}), stop it, or run another one beside it:\n"
        f'  make up UP="{options}"\n'
        f"  plimsoll up {options}"
    )


def _find_lock_holder(file: Path) -> str | None:
    """The process that holds a lock; None: none does, or the file cannot be read."""
    try:
        with file.open("rb") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return opened.read(_MOST_DIGITS).decode(errors="replace").strip() or "of an unknown number"
    except OSError:
        return None
    return None


def read_port_base(data: Path) -> int:
    """The base that was used last with this data directory, or the default."""
    try:
        written = (data / _BASE_FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return DEFAULT_PORT_BASE
    is_base = written.isdecimal() and len(written) <= len(str(HIGHEST_PORT_BASE))
    return int(written) if is_base and 0 < int(written) <= HIGHEST_PORT_BASE else DEFAULT_PORT_BASE


def write_port_base(data: Path, port_base: int) -> None:
    """Keep the base for the next start. Ports that the system chose are not kept."""
    if port_base:
        (data / _BASE_FILE).write_text(f"{port_base}\n", encoding="ascii")


def _read_option(words: list[str], option: str) -> str:
    found = ""
    for position, word in enumerate(words):
        if word == option and position + 1 < len(words):
            found = words[position + 1]
        elif word.startswith(f"{option}="):
            found = word.partition("=")[2]
    return found


def _check(words: list[str]) -> str:
    """What is wrong; empty: data and ports are free, or the command itself will say what is wrong with the words."""
    written = _read_option(words, _BASE_OPTION)
    if written and not written.isdecimal():
        return ""
    data = Path(_read_option(words, _DATA_OPTION) or DEFAULT_DATA)
    base = int(written) if written else read_port_base(data)
    if base > HIGHEST_PORT_BASE or "--help" in words:
        return ""
    if running := describe_running(data, words, base):
        return f"error: {running}"
    busy = find_busy_ports(base)
    return f"error: {describe_busy_ports(busy, words, find_free_base(base))}" if busy else ""


if __name__ == "__main__":
    sys.exit(_check(sys.argv[1:]) or 0)
