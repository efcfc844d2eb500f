"""What a request lets the analyzer change: which replicas may move, which brokers may receive, what stays and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.formatting import choose_form, format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.cluster import NONE
from plimsoll.kafka.model.proposals import Refusal
from plimsoll.kafka.model.requests import Mode
from plimsoll.objects.schema.regular_expressions import BadPattern, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.kafka.model.cluster import ClusterModel, Flags, Ints
    from plimsoll.kafka.model.description import BrokerDescription
    from plimsoll.kafka.model.requests import RebalanceRequest

_NAMED_AT_MOST: Final = 5
_BROKERS_NAMED: Final = 20
"""How many partitions or brokers a reason names."""
NO_BROKER_ANSWERED: Final = "NoBrokerAnswered"
"""The code of the refusal to plan without any log directory."""
BROKER_DOES_NOT_COUNT: Final = "BrokerDoesNotCount"
UNEVEN_REPLICATION_FACTOR: Final = "UnevenReplicationFactor"
"""The code of a cause: a broker is down or did not answer."""
_NEEDS_BROKERS: Final = frozenset({Mode.ADD_BROKERS, Mode.REMOVE_BROKERS, Mode.DEMOTE_BROKERS})
_ONLY_WHAT_LEAVES: Final = frozenset({Mode.REMOVE_BROKERS, Mode.FIX_OFFLINE_REPLICAS})


class BrokerRole(IntEnum):
    """The part of a broker in a request."""

    STAYS = 0
    NEW = 1
    LEAVING = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The limits of a request over a model of B brokers, P partitions, N replicas."""

    mode: Mode
    role: Ints
    """[B], of BrokerRole."""
    is_alive: Flags
    """[B]: registered, not fenced."""
    is_known: Flags
    """[B]: alive, and its log directories are known."""
    is_balanced: Flags
    """[B]: distribution goals judge these brokers: known, staying, not excluded for replicas."""
    leads_balanced: Flags
    """[B]: distribution goals judge the leaders of these brokers."""
    may_receive: Flags
    """[B]: replicas may move onto these brokers."""
    may_relieve: Flags
    """[B]: relief may move replicas onto these brokers, in mode add-brokers also onto old ones."""
    may_lead: Flags
    """[B]: leadership may move onto these brokers."""
    is_movable: Flags
    """[N]: soft goals may move these replicas."""
    is_repairable: Flags
    """[N]: hard goals may move these replicas."""
    must_leave: Flags
    """[N]: these replicas must move."""
    leadership_is_movable: Flags
    """[P]."""
    is_fixed: Flags
    """[P]: nothing of the partition may change."""
    excluded_topics: tuple[str, ...]
    held: tuple[Reason, ...]
    relief: bool

    @property
    def takes_leaders(self) -> Flags:
        """[B]: replicas that lead may move onto these brokers. Relief opens old ones in mode add-brokers."""
        if self.relief and self.mode is Mode.ADD_BROKERS:
            return self.may_lead | self.leads_balanced
        return self.may_lead


def build_scope(model: ClusterModel, request: RebalanceRequest) -> Scope | Refusal:
    """The scope of a request; a refusal if the request makes no sense for this cluster."""
    refusal = _check_brokers(model, request) or _check_log_dirs(model, request)
    if refusal is not None:
        return refusal
    excluded = match_topics(model.topics, request.excluded_topics, parameter="excluded_topics")
    if isinstance(excluded, Refusal):
        return excluded
    role = _list_roles(model, request)
    brokers = model.brokers
    is_alive = np.array([broker.is_registered and not broker.is_fenced for broker in brokers], dtype=np.bool_)
    is_known = np.array([_is_known(broker) for broker in brokers], dtype=np.bool_)
    is_leaving = role == BrokerRole.LEAVING
    is_excluded = excluded[model.topic_of]
    is_fixed = is_excluded | (model.leader == NONE)
    within_brokers = request.rebalance_disk or request.mode is Mode.REMOVE_DISKS
    if within_brokers:
        is_fixed |= model.reassigning  # Brokers choose the log directories of replicas that they receive.
    must_leave = _list_must_leave(model, request, is_leaving) & ~is_fixed[model.partition_of]
    is_stuck = is_leaving[model.broker_of] & is_excluded[model.partition_of]
    if is_stuck.any():
        return _refuse_excluded(model, is_stuck)
    is_repairable = (is_known[model.broker_of] | must_leave) & ~is_fixed[model.partition_of]
    stays = is_alive & ~is_leaving
    is_balanced = is_known & stays & ~_flag_brokers(model, request.excluded_for_replicas)
    may_receive = is_balanced & np.array([_has_room(broker) for broker in brokers], dtype=np.bool_)
    if request.destination_brokers:
        may_receive &= _flag_brokers(model, request.destination_brokers)
    may_relieve = may_receive.copy()
    may_lead = is_known & stays & ~_flag_brokers(model, request.excluded_for_leadership)
    leadership_is_movable = ~is_fixed
    if request.mode is Mode.ADD_BROKERS:
        may_receive &= role == BrokerRole.NEW
        may_lead &= role == BrokerRole.NEW
    elif request.mode is Mode.DEMOTE_BROKERS:
        may_lead &= ~_flag_brokers(model, request.brokers)
    elif request.mode in _ONLY_WHAT_LEAVES:
        leadership_is_movable &= _flag_partitions(model, must_leave)
    return Scope(
        mode=request.mode,
        role=role,
        is_alive=is_alive,
        is_known=is_known,
        is_balanced=is_balanced,
        leads_balanced=is_balanced & ~_flag_brokers(model, request.excluded_for_leadership),
        may_receive=may_receive,
        may_relieve=may_relieve,
        may_lead=may_lead,
        is_movable=(must_leave if request.mode in _ONLY_WHAT_LEAVES else is_repairable).copy(),
        is_repairable=is_repairable,
        must_leave=must_leave,
        leadership_is_movable=leadership_is_movable,
        is_fixed=is_fixed,
        excluded_topics=tuple(topic for topic, flag in zip(model.topics, excluded, strict=True) if flag),
        held=tuple(_list_held(model, is_excluded, must_leave, within_brokers=within_brokers)),
        relief=request.mode is Mode.FULL if request.relief is None else request.relief,
    )


def match_topics(topics: tuple[str, ...], pattern: str, *, parameter: str) -> Flags | Refusal:
    """[T]: the topics whose whole name matches; none if there is no pattern."""
    if not pattern:
        return np.zeros(len(topics), dtype=np.bool_)
    try:
        matches = compile_pattern(pattern).fullmatch
    except (BadPattern, UnicodeEncodeError) as error:
        return Refusal(
            reason=Reason(
                code="InvalidPattern",
                message=f"{pattern!r} is not a regular expression: {error}",
                facts={"parameter": parameter, "pattern": pattern},
            )
        )
    return np.array([matches(topic) is not None for topic in topics], dtype=np.bool_)


def list_partitions(model: ClusterModel, partitions: Ints) -> str:
    """The names of some partitions, for a sentence."""
    shown = ", ".join(str(model.name_partition(int(partition))) for partition in partitions[:_NAMED_AT_MOST])
    more = len(partitions) - _NAMED_AT_MOST
    return f"{shown} and {more} more" if more > 0 else shown


def _check_brokers(model: ClusterModel, request: RebalanceRequest) -> Refusal | None:
    if not model.brokers:
        return Refusal(reason=Reason(code="NoBrokers", message="the cluster has no brokers"))
    if (refusal := refuse_silence(model)) is not None:
        return refusal
    if request.mode in _NEEDS_BROKERS and not request.brokers:
        return Refusal(
            reason=Reason(
                code="BrokersNotGiven",
                message=f"mode {request.mode.value} needs at least one broker",
                facts={"parameter": "brokers"},
            )
        )
    named = {
        "brokers": request.brokers,
        "destination_brokers": request.destination_brokers,
        "excluded_for_leadership": request.excluded_for_leadership,
        "excluded_for_replicas": request.excluded_for_replicas,
    }
    for parameter, ids in named.items():
        must_run = parameter == "destination_brokers" or (parameter == "brokers" and request.mode is Mode.ADD_BROKERS)
        missing = sorted(
            {
                broker
                for broker in ids
                if broker not in model.index_of_broker
                or (must_run and not model.brokers[model.index_of_broker[broker]].is_registered)
            }
        )
        if missing:
            return _refuse_brokers(parameter, missing, request.mode, model)
        causes = _list_causes(model, sorted(set(ids))) if must_run else {}
        if causes:
            listed = "; ".join(f"broker {broker} {cause}" for broker, cause in causes.items())
            return Refusal(
                reason=Reason(
                    code="BrokersTakeNoReplicas",
                    message=f"these brokers cannot take replicas: {listed}",
                    facts={"parameter": parameter, "brokers": list(causes), "silent": _list_silent(model, causes)},
                )
            )
    return None


def _list_causes(model: ClusterModel, ids: list[int]) -> dict[int, str]:
    """Why brokers cannot take replicas, for those that cannot."""
    causes = {broker: _find_cause(model.brokers[model.index_of_broker[broker]]) for broker in ids}
    return {broker: cause for broker, cause in causes.items() if cause}


def _list_silent(model: ClusterModel, ids: Iterable[int]) -> list[int]:
    """Those that are down or did not answer."""
    return [broker for broker in ids if _describe_silence(model.brokers[model.index_of_broker[broker]])]


def is_caused_by_silence(refusal: Refusal) -> bool:
    """Whether a later request may be accepted as it is: brokers did not answer this one."""
    reason = refusal.reason
    if reason.code == NO_BROKER_ANSWERED or reason.facts.get("silent"):
        return True
    return any(
        cause.code == BROKER_DOES_NOT_COUNT and cause.facts.get("isRegistered") and not cause.facts.get("isFenced")
        for cause in reason.because
    )


def _is_known(broker: BrokerDescription) -> bool:
    """Whether a broker is alive and has answered with its log directories."""
    return broker.is_registered and not broker.is_fenced and broker.log_dirs is not None


def _describe_silence(broker: BrokerDescription) -> str:
    """Why nothing is known of a broker now; empty: it has answered."""
    if not broker.is_registered:
        return "is not registered"
    if broker.is_fenced:
        return "is fenced"
    if broker.log_dirs is None:
        return f"did not answer ({broker.problem})" if broker.problem else "did not answer"
    return ""


def explain_uncounted(model: ClusterModel, is_counted: Flags) -> tuple[Reason, ...]:
    """The brokers that do not count in a sum because they are down or did not answer: the causes of a refusal."""
    silent = [
        (broker, _describe_silence(broker)) for broker, flag in zip(model.brokers, is_counted, strict=True) if not flag
    ]
    causes = [
        Reason(
            code=BROKER_DOES_NOT_COUNT,
            message=f"broker {broker.id} {cause} and does not count",
            facts={"broker": broker.id, "isFenced": broker.is_fenced, "isRegistered": broker.is_registered},
        )
        for broker, cause in silent
        if cause
    ]
    more = causes[_NAMED_AT_MOST:]
    if not more:
        return tuple(causes)
    ids = [cause.facts["broker"] for cause in more]
    message = f"{format_count(len(ids), 'more broker does', 'more brokers do')} not count"
    return (*causes[:_NAMED_AT_MOST], Reason(code=BROKER_DOES_NOT_COUNT, message=message, facts={"brokers": ids}))


def explain_uneven_factor(model: ClusterModel, topic: int, factor: int) -> tuple[Reason, ...]:
    """That only some partitions of a topic have so many replicas, which is seldom meant: a cause of a refusal."""
    factors = np.diff(model.offsets)[model.topic_of == topic]
    fewer, some = int(factors.min()), int((factors == factor).sum())
    if fewer == factor:
        return ()
    return (
        Reason(
            code=UNEVEN_REPLICATION_FACTOR,
            message=f"{some} of {len(factors)} partitions of topic {model.topics[topic]} have {factor} replicas, "
            f"others {fewer}; Kafka gives that many to partitions that are added while partition 0 moves",
            facts={"topic": model.topics[topic], "replicationFactor": factor, "partitions": some},
        ),
    )


def refuse_silence(model: ClusterModel) -> Refusal | None:
    """A refusal if there are brokers and none of them answered."""
    if not model.brokers or any(_is_known(broker) for broker in model.brokers):
        return None
    causes = [f"broker {broker.id} {_describe_silence(broker)}" for broker in model.brokers]
    listed = "; ".join(causes[:_NAMED_AT_MOST])
    more = len(causes) - _NAMED_AT_MOST
    return Refusal(
        reason=Reason(
            code=NO_BROKER_ANSWERED,
            message=f"no broker answered with its log directories: {listed}" + (f"; and {more} more" * (more > 0)),
            facts={"brokers": [broker.id for broker in model.brokers]},
        )
    )


def _find_cause(broker: BrokerDescription) -> str:
    """Why a broker cannot take replicas; empty: it can."""
    if silence := _describe_silence(broker):
        return silence
    if _has_room(broker):
        return ""
    is_cordoned = any(log_dir.is_cordoned for log_dir in broker.log_dirs or ())
    return "has only cordoned or offline log directories" if is_cordoned else "has only offline log directories"


def _name_brokers(model: ClusterModel) -> str:
    """The ids of all brokers, the first of them."""
    ids = [broker.id for broker in model.brokers if broker.is_registered]
    shown = ", ".join(map(str, ids[:_BROKERS_NAMED]))
    more = len(ids) - _BROKERS_NAMED
    return f"{shown} and {more} more" if more > 0 else shown or "none"


def _refuse_brokers(parameter: str, missing: list[int], mode: Mode, model: ClusterModel) -> Refusal:
    verb = choose_form(len(missing), "does", "do")
    noun = choose_form(len(missing), "broker", "brokers")
    return Refusal(
        reason=Reason(
            code="BrokersDoNotExist",
            message=f"{noun} {', '.join(map(str, missing))} {verb} not exist; there are {_name_brokers(model)}",
            facts={"parameter": parameter, "brokers": missing, "mode": mode.value},
        )
    )


def _check_log_dirs(model: ClusterModel, request: RebalanceRequest) -> Refusal | None:
    if request.mode is not Mode.REMOVE_DISKS:
        return None
    if not request.log_dirs:
        message = "mode remove-disks needs at least one log directory"
        return Refusal(reason=Reason(code="LogDirsNotGiven", message=message, facts={"parameter": "log_dirs"}))
    for log_dir in request.log_dirs:
        index = model.index_of_broker.get(log_dir.broker)
        if index is None:
            return _refuse_brokers("log_dirs", [log_dir.broker], request.mode, model)
        found = model.brokers[index].log_dirs
        paths = [known.path for known in found or ()]
        if log_dir.path not in paths:
            shown = ", ".join(paths) or "none"
            return _refuse_log_dir(log_dir.broker, log_dir.path, f"has no log directory {log_dir.path}: it has {shown}")
        left = [
            known
            for known in found or ()
            if known.is_online
            and all((other.broker, other.path) != (log_dir.broker, known.path) for other in request.log_dirs)
        ]
        if not left:
            return _refuse_log_dir(log_dir.broker, log_dir.path, "has no other log directory for its replicas")
    return None


def _refuse_log_dir(broker: int, path: str, problem: str) -> Refusal:
    return Refusal(
        reason=Reason(
            code="LogDirCannotBeRemoved",
            message=f"broker {broker} {problem}",
            facts={"parameter": "log_dirs", "broker": broker, "logDir": path},
        )
    )


def _refuse_excluded(model: ClusterModel, is_stuck: Flags) -> Refusal:
    partitions = np.unique(model.partition_of[is_stuck])
    topics = sorted({model.topics[topic] for topic in model.topic_of[partitions]})
    brokers = sorted({int(model.broker_ids[broker]) for broker in model.broker_of[is_stuck]})
    return Refusal(
        reason=Reason(
            code="ExcludedTopicsOnLeavingBrokers",
            message=f"{list_partitions(model, partitions)} may not move and are on "
            f"{choose_form(len(brokers), 'broker', 'brokers')} {', '.join(map(str, brokers))}, which must be emptied",
            facts={
                "parameter": "excluded_topics",
                "topics": topics,
                "brokers": brokers,
                "partitions": len(partitions),
            },
        )
    )


def _list_roles(model: ClusterModel, request: RebalanceRequest) -> Ints:
    role = np.zeros(len(model.brokers), dtype=np.int64)
    indexes = [model.index_of_broker[broker] for broker in request.brokers]
    if request.mode is Mode.ADD_BROKERS:
        role[indexes] = BrokerRole.NEW
    elif request.mode is Mode.REMOVE_BROKERS:
        role[indexes] = BrokerRole.LEAVING
    return role


def _list_must_leave(model: ClusterModel, request: RebalanceRequest, is_leaving: Flags) -> Flags:
    if request.mode is Mode.FIX_OFFLINE_REPLICAS:
        return model.offline
    flags: Flags = is_leaving[model.broker_of]
    return flags


def _flag_brokers(model: ClusterModel, brokers: tuple[int, ...]) -> Flags:
    flags = np.zeros(len(model.brokers), dtype=np.bool_)
    flags[[model.index_of_broker[broker] for broker in brokers]] = True
    return flags


def _has_room(broker: BrokerDescription) -> bool:
    """Whether a log directory takes new replicas. A broker that lists none is taken at its word."""
    dirs = broker.log_dirs
    return not dirs or any(log_dir.is_online and not log_dir.is_cordoned for log_dir in dirs)


def _flag_partitions(model: ClusterModel, rows: Flags) -> Flags:
    flags = np.zeros(model.partition_count, dtype=np.bool_)
    flags[model.partition_of[rows]] = True
    return flags


def _list_held(model: ClusterModel, is_excluded: Flags, must_leave: Flags, *, within_brokers: bool) -> Iterator[Reason]:
    """What stays or waits although nothing in the request says so. Excluded topics are in the request."""
    if len(partitions := np.flatnonzero(model.reassigning & ~is_excluded)):
        later = "" if within_brokers else "; what this plan moves of it begins at its target, after it has ended"
        yield Reason(
            code="ReassignmentUnderWay",
            message=f"{list_partitions(model, partitions)}: a reassignment is under way{later}",
            facts={
                "partitions": [str(model.name_partition(int(index))) for index in partitions],
                "movesLater": not within_brokers,
            },
        )
    if len(partitions := np.flatnonzero((model.leader == NONE) & ~model.reassigning & ~is_excluded)):
        yield Reason(
            code="NoLeader",
            message=f"{list_partitions(model, partitions)}: no replica leads, so no broker could copy from it",
            facts={"partitions": [str(model.name_partition(int(index))) for index in partitions]},
        )
    rows_of = np.bincount(model.broker_of[~must_leave], minlength=len(model.brokers))
    for index, broker in enumerate(model.brokers):
        if not rows_of[index]:
            continue
        if cause := _describe_silence(broker):
            is_down = not broker.is_registered or broker.is_fenced
            yield _hold_broker(broker, "BrokerIsDown" if is_down else "BrokerDidNotAnswer", cause, int(rows_of[index]))


def _hold_broker(broker: BrokerDescription, code: str, cause: str, replicas: int) -> Reason:
    return Reason(
        code=code,
        message=f"broker {broker.id} {cause}: its {format_count(replicas, 'replica stays', 'replicas stay')}",
        facts={"broker": broker.id, "replicas": replicas},
    )
