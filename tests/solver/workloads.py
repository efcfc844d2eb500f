"""Packings as the planner meets them: pods of log-normal or uniform sizes on machine types like n1, or on many more."""

import numpy as np

from plimsoll.solver.problem import UNBOUNDED, Floats, Ints, PackingProblem

CORE_HOUR = 0.031611
GIB_HOUR = 0.004237
MIB = 1024


def packing(
    requests: Ints | list[list[int]],
    counts: Ints | list[int],
    capacity: Ints | list[list[int]],
    price: Floats | list[float],
    **given: object,
) -> PackingProblem:
    """A packing in which everything may go everywhere by default."""
    requests, counts, capacity = (np.asarray(part, dtype=np.int64) for part in (requests, counts, capacity))
    classes, types = len(requests), len(capacity)
    fields = {
        "allowed": np.ones((types, classes), dtype=np.bool_),
        "per_bin": np.full(classes, UNBOUNDED),
        "exclusive": np.zeros((classes, 0), dtype=np.bool_),
        "available": np.full(types, UNBOUNDED),
        "use": np.zeros((types, 0), dtype=np.int64),
        "room": np.zeros(0, dtype=np.int64),
    }
    fields.update({name: np.asarray(value) for name, value in given.items()})
    return PackingProblem(
        requests=requests, counts=counts, capacity=capacity, price=np.asarray(price, dtype=np.float64), **fields
    )


def n1_types() -> tuple[Ints, Floats]:
    """19 shapes: standard 1..64 cores, highmem and highcpu 2..64. A share of each is the kubelet's."""
    shapes = [(cores, cores * 3840) for cores in (1, 2, 4, 8, 16, 32, 64)]
    shapes += [(cores, cores * 6656) for cores in (2, 4, 8, 16, 32, 64)]
    shapes += [(cores, cores * 922) for cores in (2, 4, 8, 16, 32, 64)]
    return _offered(shapes)


def synthetic_types(count: int) -> tuple[Ints, Floats]:
    """Distinct shapes of 1..96 cores and up to 20 memory ratios."""
    cores = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 80, 96)
    ratios = [int(MIB * 0.9 * 1.13**step) for step in range(20)]
    shapes = [(core, core * ratio) for ratio in ratios for core in cores]
    spread = np.linspace(0, len(shapes) - 1, count).astype(int)
    return _offered([shapes[i] for i in spread])


def _offered(shapes: list[tuple[int, int]]) -> tuple[Ints, Floats]:
    capacity, price = [], []
    for cores, mib in shapes:
        reserved_milli = 60 + 10 * (min(cores, 2) - 1) + 5 * max(min(cores, 4) - 2, 0) + int(2.5 * max(cores - 4, 0))
        reserved_mib = 100 + min(mib, 4096) // 4 + max(min(mib, 8192) - 4096, 0) // 5 + max(mib - 8192, 0) // 16
        capacity.append([cores * 1000 - reserved_milli, max(mib - reserved_mib, 256), 100 * MIB, 110, 0])
        price.append(cores * CORE_HOUR + mib / MIB * GIB_HOUR)
    return np.array(capacity, dtype=np.int64), np.array(price)


def pods(items: int, classes: int, seed: int, *, shape: str = "log-normal") -> tuple[Ints, Ints]:
    """Requests and counts: cpu in milli, memory and ephemeral storage in MiB, one pod each, no gpu."""
    random = np.random.default_rng(seed)
    if shape == "uniform":
        cpu = random.integers(1, 41, classes) * 100
        memory = random.integers(1, 65, classes) * 128
    else:
        cpu = np.clip(np.exp(random.normal(np.log(400), 0.9, classes)) // 10 * 10, 10, 16000)
        memory = np.clip(np.exp(random.normal(np.log(1024), 0.9, classes)) // 16 * 16, 16, 32768)
    ones = np.ones(classes)
    requests = np.column_stack([cpu, memory, 64 * ones, ones, 0 * ones]).astype(np.int64)
    counts = np.full(classes, items // classes)
    counts[: items % classes] += 1
    return requests, counts


def workload(items: int, classes: int, types: int, seed: int = 1, *, shape: str = "log-normal") -> PackingProblem:
    requests, counts = pods(items, classes, seed, shape=shape)
    capacity, price = n1_types() if types == 19 else synthetic_types(types)
    return packing(requests, counts, capacity, price)
