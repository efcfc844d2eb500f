"""Shared by the commands that read the journal: its location, references to objects, and times."""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.core.plans import Ref
    from plimsoll.journal.sqlite_file import JournalFile

DEFAULT_DATA = ".plimsoll"
DataOption = Annotated[
    str,
    typer.Option(
        "--data", help=f"Directory of the journal. Default: ./{DEFAULT_DATA}.", metavar="DIR", show_default=False
    ),
]
_KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("node", "nodes", "no"), "node"),
    **dict.fromkeys(("nodegroup", "nodegroups", "ng", "group"), "nodegroup"),
    **dict.fromkeys(("machinetype", "machinetypes"), "machinetype"),
    **dict.fromkeys(("request", "requests", "provisioningrequest", "provisioningrequests", "provreq"), "request"),
    "cluster": "cluster",
    **dict.fromkeys(("deployment", "deployments", "deploy"), "deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "replicaset"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "statefulset"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "daemonset"),
    **dict.fromkeys(("job", "jobs"), "job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "cronjob"),
    **dict.fromkeys(("tidbclusterautoscaler", "tidbclusterautoscalers", "ta"), "tidbclusterautoscaler"),
    **dict.fromkeys(("tidbcluster", "tidbclusters", "tc"), "tidbcluster"),
}
_LIKE_KIND = 0.8
_CLUSTER_WIDE = frozenset(("node", "nodegroup", "machinetype", "cluster"))


def read_ref(text: str, *, namespace: str = "") -> Ref:
    """Read KIND/[NAMESPACE/]NAME, as commands and kubectl print it: deployment.apps/web, default/web-0 for a pod.

    Ids of node groups come from the cloud and may contain slashes.
    """
    from plimsoll.core.plans import Ref

    written, _, rest = text.partition("/")
    # kubectl and -o name append the API group: deployment.apps, provisioningrequest.autoscaling.x-k8s.io
    kind = _KINDS.get(written.lower()) or _KINDS.get(written.lower().partition(".")[0])
    if not rest:
        raise InvalidInput(f"{text!r} is not KIND/NAME or KIND/NAMESPACE/NAME, e.g. pod/default/web-0")
    if kind is None and "/" not in rest and _is_namespace(written):
        return Ref(kind="pod", namespace=written, name=rest)
    if kind is None:
        near = difflib.get_close_matches(written.lower(), _KINDS, n=1)
        known = ", ".join(dict.fromkeys(_KINDS.values()))
        meant = f"; did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"unknown kind {written!r}{meant}; known are {known}", path=text)
    if kind in _CLUSTER_WIDE:
        return Ref(kind=kind, name=rest)
    first, slash, second = rest.partition("/")
    if "/" in second or (slash and not (first and second)):
        raise InvalidInput(f"a {kind} is named {kind}/NAME or {kind}/NAMESPACE/NAME", path=text)
    if slash and namespace and namespace != first:
        raise InvalidInput(f"is in namespace {first}, and -n says {namespace}; omit one of them", path=text)
    return Ref(kind=kind, namespace=first if slash else namespace or "default", name=second if slash else first)


def _is_namespace(written: str) -> bool:
    """Whether a word is more likely a namespace than a kind: commands print pods as NAMESPACE/NAME."""
    from plimsoll.objects.registry import KINDS

    is_like_kind = difflib.get_close_matches(written.lower(), _KINDS, n=1, cutoff=_LIKE_KIND)
    return KINDS.by_name(written) is None and not is_like_kind and written == written.lower()


def get_journal_path(data: str) -> Path:
    from plimsoll.journal.sqlite_file import JOURNAL_FILE

    return Path(data or DEFAULT_DATA) / JOURNAL_FILE


@contextmanager
def open_journal(data: str) -> Iterator[JournalFile]:
    """Open the journal read-only, while it may still be written. Raises `NothingKnown` if there is none."""
    from plimsoll.journal.errors import NothingKnown
    from plimsoll.journal.sqlite_file import JournalFile

    path = get_journal_path(data)
    if not path.exists():
        raise NothingKnown(
            f"there is no journal in {path.parent}",
            hint="plimsoll up and plimsoll run nodes --data DIR write one; pass its directory with --data, "
            "or ask the cluster: plimsoll why KIND/NAME --kubeconfig FILE",
        )
    journal = JournalFile(path, read_only=True)
    try:
        yield journal
    finally:
        journal.close()


def read_time_or_age(text: str, *, now: datetime, path: str) -> datetime | None:
    """Read `1h` (ago), or an RFC 3339 time; None if nothing was given."""
    from datetime import timedelta

    import msgspec

    from plimsoll.core.value_parsing import read_duration_s
    from plimsoll.objects.api.meta import Time

    if not text:
        return None
    ago_s = read_duration_s(text)
    try:
        return msgspec.convert(text, Time) if ago_s is None else now - timedelta(seconds=ago_s)
    except (msgspec.ValidationError, OverflowError):
        problem = f'{text!r} is neither a time ago like "90s", "15m" or "36h" nor a time like "2026-01-31T12:00:00Z"'
        raise InvalidInput(problem, path=path) from None
