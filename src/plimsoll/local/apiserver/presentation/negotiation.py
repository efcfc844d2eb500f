"""Content negotiation: from the Accept header of a request to a `MediaForm`.

The rules are those of kube-apiserver, in two steps that reject with different words: built-in resources first check
whether any of the media types is known at all, then the parameters (`as=Table`, `stream=watch`) are read. Protobuf may
be listed and is never chosen: every client that lists it accepts JSON as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from plimsoll.core.values import Value
from plimsoll.local.apiserver.http_types import JSON, PROTOBUF, YAML
from plimsoll.local.apiserver.status_errors import bad_request, failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.local.apiserver.http_types import Request

_MEDIA: Final = {JSON: "json", YAML: "yaml"}
_KNOWN: Final = (JSON, YAML, PROTOBUF)
_STREAMED: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_FORMS: Final = {"Table": "table", "PartialObjectMetadata": "partial", "PartialObjectMetadataList": "partial"}
_INCLUDED: Final = {None: "Metadata", "": "Metadata", "Metadata": "Metadata", "Object": "Object", "None": "None"}
_READ_BY_PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")
# Go's strconv.ParseBool.
_TRUE: Final = {"1", "t", "T", "TRUE", "true", "True"}
_LONGEST_HEADER: Final = 16_384


class MediaForm(Value):
    """How an answer is written. `kind`: `object`, `table` or `partial` (metadata only; `of_list`: asked as a list)."""

    kind: str = "object"
    media: str = "json"
    version: str = "v1"
    include_object: str = "Metadata"
    of_list: bool = False
    pretty: bool = False

    @property
    def content_type(self) -> str:
        return YAML if self.media == "yaml" else JSON

    @property
    def is_plain(self) -> bool:
        """Objects as they are stored: nothing has to be encoded again."""
        return self.kind == "object" and self.media == "json" and not self.pretty


_PLAIN: Final = MediaForm()
_INDENTED: Final = MediaForm(pretty=True)


class Clause(NamedTuple):
    """One media range of an Accept header with its parameters."""

    media_type: str
    parameters: Mapping[str, str]
    quality: float

    def covers(self, media_type: str) -> bool:
        kind, _, subtype = self.media_type.partition("/")
        return self.media_type in {media_type, "*/*"} or (subtype == "*" and media_type.startswith(f"{kind}/"))


def negotiate(request: Request, *, watch: bool, custom: bool = False) -> MediaForm:
    """The form of the answer; raises the 406 of a real server where there is none, the 400 of an odd includeObject."""
    header = request.get_header("accept")
    if header == JSON:
        # What controllers ask for, asked twice in every write: 4 % of it.
        return _INDENTED if _is_pretty(request, "") else _PLAIN
    if not custom and not _is_known_at_all(header):
        raise _build_not_acceptable(watch=watch)
    form = _choose(header)
    if form is None:
        raise not_acceptable(tuple(_MEDIA) if _is_protobuf_only(header) else _KNOWN)
    if watch and form.media != "json":
        raise not_acceptable(_STREAMED)
    form = msgspec.structs.replace(form, pretty=_is_pretty(request, header))
    if form.kind != "table":
        return form
    return msgspec.structs.replace(form, include_object=_read_include_object(request))


def choose_error_media(request: Request) -> MediaForm:
    """Errors are never tables; where the header allows nothing they are JSON."""
    header = request.get_header("accept")
    form = next((candidate for candidate in _list_candidates(header) if candidate.kind == "object"), MediaForm())
    return msgspec.structs.replace(form, pretty=_is_pretty(request, header))


def parse_clauses(header: str) -> list[Clause]:
    """The media ranges, the preferred first: by quality, then the more specific, then as written."""
    parsed = [clause for part in header[:_LONGEST_HEADER].split(",") if (clause := _parse_clause(part)) is not None]
    return sorted(
        parsed, key=lambda clause: (-clause.quality, clause.media_type.startswith("*"), clause.media_type.endswith("*"))
    )


def not_acceptable(media_types: tuple[str, ...]) -> Exception:
    accepted = ", ".join(media_types)
    return failure(406, "NotAcceptable", f"only the following media types are accepted: {accepted}")


def _parse_clause(part: str) -> Clause | None:
    written, *rest = part.strip().split(";")
    media_type = written.strip()
    if media_type == "*":
        media_type = "*/*"
    if media_type.count("/") != 1:
        return None
    quality = 1.0
    parameters: dict[str, str] = {}
    for parameter in rest:
        name, sign, value = parameter.partition("=")
        if not sign or "=" in value or not value:
            continue
        if name.strip() == "q":
            quality = _parse_quality(value)
        else:
            parameters[name.strip()] = value.strip()
    kind, _, subtype = media_type.partition("/")
    return Clause(f"{kind.strip()}/{subtype.strip()}", parameters, quality)


def _parse_quality(text: str) -> float:
    """A number; Go reads anything else as 0."""
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if quality == quality else 0.0  # noqa: PLR0124 - not a number is the one that differs from itself


def _is_known_at_all(header: str) -> bool:
    """go-restful's check: media types without their parameters; `application/*` is not known to it."""
    if not header.strip():
        return True
    named = {part.split(";", 1)[0].strip() for part in header.split(",")}
    return not named.isdisjoint({"*/*", *_KNOWN})


def _is_protobuf_only(header: str) -> bool:
    """A request that kube-apiserver would serve and this server does not: the error must not list protobuf."""
    return any(clause.media_type == PROTOBUF and "as" not in clause.parameters for clause in parse_clauses(header))


def _build_not_acceptable(*, watch: bool) -> Exception:
    available = ", ".join((*_KNOWN, *_STREAMED) if watch else _KNOWN)
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return failure(406, "NotAcceptable", message, details={})


def _choose(header: str) -> MediaForm | None:
    return next(iter(_list_candidates(header)), None)


def _list_candidates(header: str) -> list[MediaForm]:
    if not header.strip():
        return [MediaForm()]
    return [
        form
        for clause in parse_clauses(header)
        for media_type in _MEDIA
        if clause.covers(media_type) and (form := _match_form(clause, media_type)) is not None
    ]


def _match_form(clause: Clause, media_type: str) -> MediaForm | None:
    requested = clause.parameters
    if requested.get("stream", "watch") != "watch":
        return None
    if not any(requested.get(name) for name in ("as", "g", "v")):
        return MediaForm(media=_MEDIA[media_type])
    kind, version = requested.get("as", ""), requested.get("v", "")
    if kind not in _FORMS or requested.get("g") != "meta.k8s.io" or version not in {"v1", "v1beta1"}:
        return None
    return MediaForm(kind=_FORMS[kind], media=_MEDIA[media_type], version=version, of_list=kind.endswith("List"))


def _is_pretty(request: Request, header: str) -> bool:
    requested = request.get_parameter("pretty")
    if requested:
        return requested in _TRUE
    if header and any(clause.parameters.get("pretty") == "1" for clause in parse_clauses(header)[:1]):
        return True
    return request.get_header("user-agent").startswith(_READ_BY_PEOPLE)


def _read_include_object(request: Request) -> str:
    requested = request.get_parameter("includeObject")
    if requested not in _INCLUDED:
        reason = f"includeObject: Invalid value: \"{requested}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {reason}")
    return _INCLUDED[requested]
