"""A second opinion on packings: every rule of `PackingProblem`, item by item of the answer, in Python integers."""

from plimsoll.solver.problem import Packing, PackingProblem


def violations(problem: PackingProblem, packed: Packing) -> list[str]:
    found: list[str] = []
    opened = [0] * len(problem.price)
    placed = [0] * len(problem.counts)
    cost = 0.0
    for filling in packed.patterns:
        opened[filling.type] += filling.bins
        cost += filling.bins * float(problem.price[filling.type])
        if filling.bins < 1 or not filling.classes or list(filling.classes) != sorted(set(filling.classes)):
            found.append(f"not a filling: {filling}")
        content = dict(zip(filling.classes, filling.items, strict=True))
        found += _content(problem, filling.type, content)
        for class_, items in content.items():
            placed[class_] += items * filling.bins
    for class_, count in enumerate(problem.counts.tolist()):
        if placed[class_] + int(packed.left[class_]) != count or packed.left[class_] < 0:
            found.append(f"class {class_}: {placed[class_]} placed, {packed.left[class_]} left, of {count}")
    for type_, bins in enumerate(opened):
        if bins > problem.available[type_]:
            found.append(f"type {type_}: {bins} bins, {problem.available[type_]} available")
    for limit, room in enumerate(problem.room.tolist()):
        used = sum(bins * int(problem.use[type_, limit]) for type_, bins in enumerate(opened))
        if used > room and used > 0:
            found.append(f"limit {limit}: {used} of {room}")
    if abs(cost - packed.cost) > 1e-9 * max(cost, 1.0):
        found.append(f"cost {packed.cost}, not {cost}")
    return found


def _content(problem: PackingProblem, type_: int, content: dict[int, int]) -> list[str]:
    found: list[str] = []
    for resource, capacity in enumerate(problem.capacity[type_].tolist()):
        used = sum(items * int(problem.requests[class_, resource]) for class_, items in content.items())
        if used > max(capacity, 0):
            found.append(f"type {type_}, resource {resource}: {used} of {capacity}")
    for class_, items in content.items():
        if items < 1 or items > problem.per_bin[class_] or not problem.allowed[type_, class_]:
            found.append(f"type {type_}: {items} of class {class_}")
    for key in range(problem.exclusive.shape[1]):
        owners = sum(items for class_, items in content.items() if problem.exclusive[class_, key])
        if owners > 1:
            found.append(f"type {type_}, key {key}: {owners} items")
    return found
