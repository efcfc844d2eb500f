"""Deals leaving replicas to receivers (docs/design/performance.md, joint balance, step 6).

The largest replica is assigned first. A replica goes to the broker that lacks the most bytes per missing replica. The
first choice are brokers below the cap of the topic that have room for all its bytes; the second, all brokers below the
cap; the third, all with a free slot. The ratio brings counts and bytes to their targets together: bytes alone would
fill a broker with few large replicas.

There are two ways of one loop, and tests compare them: `deal_compiled` for machine code, and `deal_plain`, which
handles all receivers of a replica at once with numpy.
"""

from typing import NamedTuple

import numpy as np

from plimsoll.solver.kernels import FlagVector, FloatVector, IntMatrix, IntVector, kernel


class DealArrays(NamedTuple):
    """Inputs, and what dealing changes: `broker_of`, `slots`, `need`, `held`, `topic_counts`, `destination`."""

    replicas: IntVector
    """[M]: the replicas to deal, largest first."""
    partition_of: IntVector
    """[M]."""
    source: IntVector
    """[M]."""
    size: FloatVector
    """[M]."""
    topic: IntVector
    """[M]: a row of `topic_counts`."""
    topic_cap: IntVector
    """[rows of topic_counts]."""
    offsets: IntVector
    broker_of: IntVector
    rack_of: IntVector
    rack_cap: IntVector
    """[P]."""
    leaves: FlagVector
    """[B]: whether the broker leaves."""
    receivers: IntVector
    """[R]: the brokers with slots, ascending."""
    slots: IntVector
    """[R]."""
    need: FloatVector
    """[R]: bytes still wanted."""
    tolerance: FloatVector
    """[R]: how far a replica may overshoot the need."""
    held: FloatVector
    """[R]: bytes of the broker, even if what it gives finds no other place."""
    max_bytes: FloatVector
    """[R]."""
    topic_counts: IntMatrix
    """[topics that move, R]."""
    destination: IntVector
    """[M]: the broker, or -1."""


@kernel()
def deal_compiled(arrays: DealArrays, rack_counts: IntVector, is_host: FlagVector) -> int:
    """Deal all replicas; returns the number of those that found no receiver. The last two are scratch space."""
    failed = 0
    for item in range(arrays.replicas.shape[0]):
        partition = arrays.partition_of[item]
        source = arrays.source[item]
        size = arrays.size[item]
        first = arrays.offsets[partition]
        last = arrays.offsets[partition + 1]
        for row in range(first, last):
            host = arrays.broker_of[row]
            is_host[host] = True
            rack_counts[arrays.rack_of[host]] += 1
        source_rack = arrays.rack_of[source]
        best = -1
        best_rank = 0
        best_ratio = -np.inf
        for place in range(arrays.receivers.shape[0]):
            if arrays.slots[place] <= 0:
                continue
            broker = arrays.receivers[place]
            if is_host[broker] or arrays.held[place] + size > arrays.max_bytes[place]:
                continue
            rack = arrays.rack_of[broker]
            if rack != source_rack and (
                rack_counts[rack] >= arrays.rack_cap[partition]
                or (
                    arrays.rack_cap[partition] > 1
                    and not arrays.leaves[source]
                    and rack_counts[rack] + 1 > rack_counts[source_rack]
                )
            ):
                continue
            ratio = arrays.need[place] / arrays.slots[place]
            rank = 1
            if arrays.topic_counts[arrays.topic[item], place] < arrays.topic_cap[arrays.topic[item]]:
                rank = 3 if size <= arrays.need[place] + arrays.tolerance[place] else 2
            if rank > best_rank or (rank == best_rank and ratio > best_ratio):
                best_rank = rank
                best_ratio = ratio
                best = place
        for row in range(first, last):
            host = arrays.broker_of[row]
            is_host[host] = False
            rack_counts[arrays.rack_of[host]] = 0
        if best < 0:
            failed += 1
            continue
        arrays.destination[item] = arrays.receivers[best]
        arrays.broker_of[arrays.replicas[item]] = arrays.receivers[best]
        arrays.slots[best] -= 1
        arrays.need[best] -= size
        arrays.held[best] += size
        arrays.topic_counts[arrays.topic[item], best] += 1
    return failed


def deal_plain(arrays: DealArrays) -> int:
    """The same as `deal_compiled`, with one numpy operation over all receivers instead of a loop."""
    failed = 0
    receiver_racks = arrays.rack_of[arrays.receivers]
    place_of = np.full(len(arrays.rack_of), -1, dtype=np.int64)
    place_of[arrays.receivers] = np.arange(len(arrays.receivers))
    is_elsewhere = [receiver_racks != rack for rack in range(int(arrays.rack_of.max()) + 1)]
    has_slots = arrays.slots > 0
    ratio = np.where(has_slots, arrays.need / np.maximum(arrays.slots, 1), -np.inf)
    reach = arrays.need + arrays.tolerance
    offsets = arrays.offsets.tolist()
    racks = arrays.rack_of.tolist()
    rows = zip(
        arrays.replicas.tolist(),
        arrays.partition_of.tolist(),
        arrays.source.tolist(),
        arrays.size.tolist(),
        arrays.topic.tolist(),
        strict=True,
    )
    for item, (replica, partition, source, size, topic) in enumerate(rows):
        hosts = arrays.broker_of[offsets[partition] : offsets[partition + 1]].tolist()
        legal = has_slots & (arrays.held + size <= arrays.max_bytes)
        counts: dict[int, int] = {}
        for host in hosts:
            counts[racks[host]] = counts.get(racks[host], 0) + 1
            if place_of[host] >= 0:
                legal[place_of[host]] = False
        cap = int(arrays.rack_cap[partition])
        for rack, count in counts.items():
            if rack != racks[source] and (
                count >= cap or (cap > 1 and not arrays.leaves[source] and count + 1 > counts[racks[source]])
            ):
                legal &= is_elsewhere[rack]
        candidates = legal
        below_cap = legal & (arrays.topic_counts[topic] < arrays.topic_cap[topic])
        if below_cap.any():
            fits = below_cap & (size <= reach)
            candidates = fits if fits.any() else below_cap
        elif not legal.any():
            failed += 1
            continue
        best = int(np.argmax(np.where(candidates, ratio, -np.inf)))
        arrays.destination[item] = arrays.receivers[best]
        arrays.broker_of[replica] = arrays.receivers[best]
        arrays.slots[best] -= 1
        arrays.need[best] -= size
        arrays.held[best] += size
        arrays.topic_counts[topic, best] += 1
        has_slots[best] = arrays.slots[best] > 0
        ratio[best] = arrays.need[best] / arrays.slots[best] if has_slots[best] else -np.inf
        reach[best] = arrays.need[best] + arrays.tolerance[best]
    return failed
