"""Workloads and node types as the planner meets them, and an independent check that an answer is a packing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from plimsoll.solver.problem import UNBOUNDED, BinPattern, Floats, Ints, Packing, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

MIB_PER_GIB = 1024


def packing(
    requests: ArrayLike, counts: ArrayLike, capacity: ArrayLike, price: ArrayLike, **changes: NDArray[Any]
) -> PackingProblem:
    """A `PackingProblem` without constraints but those named."""
    sizes, bins = np.array(requests, dtype=np.int64), np.array(capacity, dtype=np.int64)
    classes, types = len(sizes), len(bins)
    fields: dict[str, NDArray[Any]] = {
        "requests": sizes,
        "counts": np.array(counts, dtype=np.int64),
        "capacity": bins,
        "price": np.array(price, dtype=np.float64),
        "allowed": np.ones((types, classes), dtype=bool),
        "per_bin": np.full(classes, UNBOUNDED, dtype=np.int64),
        "exclusive": np.zeros((classes, 0), dtype=bool),
        "available": np.full(types, UNBOUNDED, dtype=np.int64),
        "use": np.zeros((types, 0), dtype=np.int64),
        "room": np.zeros(0, dtype=np.int64),
    }
    return PackingProblem(**(fields | changes))


def shapes(cores_and_gib: Sequence[tuple[float, float]]) -> tuple[Ints, Floats]:
    """Allocatable cpu (milli), memory (MiB), ephemeral (MiB), pods, gpus; and prices as n1 machines have them."""
    capacity, price = [], []
    for cores, gib in cores_and_gib:
        held = 0.06 * min(cores, 1) + 0.01 * min(max(cores - 1, 0), 1) + 0.005 * min(max(cores - 2, 0), 2)
        held += 0.0025 * max(cores - 4, 0)
        kept = 0.25 * min(gib, 4) + 0.2 * min(max(gib - 4, 0), 4) + 0.1 * min(max(gib - 8, 0), 8)
        kept += 0.06 * min(max(gib - 16, 0), 112) + 0.02 * max(gib - 128, 0) + 0.1
        capacity.append([int((cores - held) * 1000), int((gib - kept) * MIB_PER_GIB), 100 * MIB_PER_GIB, 110, 0])
        price.append(0.031611 * cores + 0.004237 * gib)
    return np.array(capacity, dtype=np.int64), np.array(price)


def n1_types() -> tuple[Ints, Floats]:
    cores = (1, 2, 4, 8, 16, 32, 64)
    return shapes(
        [(c, 3.75 * c) for c in cores] + [(c, 6.5 * c) for c in cores[1:]] + [(c, 0.9 * c) for c in cores[1:]]
    )


def many_types(count: int) -> tuple[Ints, Floats]:
    cores = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
    grid = [(c, c * ratio) for ratio in np.linspace(0.9, 8, -(-count // len(cores))).round(2) for c in cores]
    return shapes([(c, max(g, 1.5)) for c, g in grid[:count]])


def demand(kind: str, *, pods: int, classes: int, seed: int = 1) -> tuple[Ints, Ints]:
    """So many pods in about so many classes: requests and counts."""
    random = np.random.default_rng(seed)
    if kind == "uniform":
        cpu, mem = random.integers(1, 41, classes) * 100, random.integers(1, 65, classes) * 128
    elif kind == "uniform-fine":
        cpu, mem = random.integers(100, 4001, classes), random.integers(128, 8193, classes)
    else:
        cpu = np.clip(np.exp(random.normal(np.log(400), 1.0, classes)), 10, 16_000).astype(np.int64)
        mem = np.clip(np.exp(random.normal(np.log(900), 1.1, classes)), 16, 48_000).astype(np.int64)
    requests = np.stack([cpu, mem, np.zeros_like(cpu), np.ones_like(cpu), np.zeros_like(cpu)], axis=1)
    requests, inverse = np.unique(requests, axis=0, return_inverse=True)
    share = random.dirichlet(np.ones(len(requests))) if classes < pods else None
    counts = np.bincount(inverse) if share is None else 1 + random.multinomial(pods - len(requests), share)
    return requests, counts


def gpu_market(*, pods: int = 8000, classes: int = 370, seed: int = 1) -> PackingProblem:
    """Whole GPUs of several models on 45 types, a third of the GPU classes bound to some models."""
    random = np.random.default_rng(seed)
    plain, price = shapes([(c, c * r) for c in (8, 16, 32, 64, 96) for r in (2, 4, 8)])
    capacity, prices, model = [*plain], [*price], [-1] * len(plain)
    for index, dollars in enumerate((0.35, 0.95, 1.5, 2.2, 2.9, 0.6)):
        for gpus in (1, 2, 4, 8, 8):
            cores = max(8, 12 * gpus) if len(model) % 2 else max(8, 8 * gpus)
            body, cost = shapes([(cores, cores * 6)])
            body[0, 4] = gpus
            capacity.append(body[0])
            prices.append(cost[0] + dollars * gpus)
            model.append(index)
    models = np.array(model)
    gpu = random.choice([0, 1, 1, 1, 2, 4, 8], classes)
    cpu = np.where(gpu > 0, gpu * random.integers(2, 12, classes) * 1000, random.integers(1, 65, classes) * 500)
    mem = cpu * random.integers(1, 7, classes) // 1
    requests = np.stack([cpu, mem, np.zeros_like(cpu), np.ones_like(cpu), gpu], axis=1)
    allowed = np.ones((len(models), classes), dtype=bool)
    allowed &= (models[:, None] >= 0) == (gpu > 0)[None, :]
    for gpu_class in np.flatnonzero((gpu > 0) & (random.random(classes) < 0.33)):
        allowed[:, gpu_class] &= np.isin(models, random.choice(6, random.integers(1, 3), replace=False))
    caps = np.array(capacity)
    fits = ((caps[:, None, :] >= requests[None]).all(axis=2) & allowed).any(axis=0)
    counts = 1 + random.multinomial(pods - fits.sum(), random.dirichlet(np.full(fits.sum(), 0.4)))
    return packing(requests[fits], counts, caps, prices, allowed=allowed[:, fits])


def faults(problem: PackingProblem, packed: Packing) -> list[str]:
    """What is wrong with an answer, in words; plain loops over Python integers, sharing nothing with the solver."""
    found, used, placed = [], [0] * len(problem.price), [0] * len(problem.counts)
    for filling in packed.patterns:
        used[filling.type] += filling.bins
        found += _filling_faults(problem, filling)
        for index, items in zip(filling.classes, filling.items, strict=True):
            placed[index] += items * filling.bins
    found += [f"type {t}: {n} bins" for t, n in enumerate(used) if n > int(problem.available[t])]
    for limit, room in enumerate(problem.room.tolist()):
        if sum(n * int(problem.use[t, limit]) for t, n in enumerate(used)) > room:
            found.append(f"limit {limit} exceeded")
    for index, count in enumerate(problem.counts.tolist()):
        if placed[index] + int(packed.left[index]) != count or packed.left[index] < 0:
            found.append(f"class {index}: {placed[index]} placed and {packed.left[index]} left of {count}")
    if abs(packed.cost - sum(n * float(problem.price[t]) for t, n in enumerate(used))) > 1e-6 * (1 + packed.cost):
        found.append("cost is not the sum of prices")
    return found


def _filling_faults(problem: PackingProblem, filling: BinPattern) -> list[str]:
    found = []
    inside = list(zip(filling.classes, filling.items, strict=True))
    if filling.bins < 1 or list(filling.classes) != sorted(set(filling.classes)) or min(filling.items, default=1) < 1:
        found.append(f"odd filling {filling}")
    for resource, capacity in enumerate(problem.capacity[filling.type].tolist()):
        if sum(items * int(problem.requests[index, resource]) for index, items in inside) > capacity:
            found.append(f"resource {resource} exceeded in {filling}")
    found += [
        f"class {index} may not lie so in {filling}"
        for index, items in inside
        if not problem.allowed[filling.type, index] or items > problem.per_bin[index]
    ]
    found += [
        f"key {key} twice in {filling}"
        for key in range(problem.exclusive.shape[1])
        if sum(items for index, items in inside if problem.exclusive[index, key]) > 1
    ]
    return found


@st.composite
def tiny_packings(draw: st.DrawFn) -> PackingProblem:
    """A few classes and types, with everything that forbids something; nothing that limits bins."""
    classes, types, keys = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 2))

    def build_table(rows: int, columns: int, numbers: st.SearchStrategy[Any]) -> NDArray[Any]:
        cells = rows * columns
        return np.array(draw(st.lists(numbers, min_size=cells, max_size=cells))).reshape(rows, columns)

    return packing(
        build_table(classes, 2, st.integers(0, 6)),
        build_table(1, classes, st.integers(0, 3))[0],
        build_table(types, 2, st.integers(3, 12)),
        build_table(1, types, st.integers(1, 9))[0] / 4,
        allowed=build_table(types, classes, st.sampled_from([True, True, True, False])).astype(bool),
        per_bin=build_table(1, classes, st.one_of(st.just(UNBOUNDED), st.integers(1, 2)))[0],
        exclusive=build_table(classes, keys, st.sampled_from([True, False, False])).astype(bool),
    )
