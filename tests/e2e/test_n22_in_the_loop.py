"""N22 through the loop: 30,000 pods in 300 shapes, 40 machine types, 5 selectors that exclude each other, 60 groups.

Needs no server, but a server in memory with 30,000 pods: half a minute.
"""

from __future__ import annotations

import random

from tests.nodes.autoscaler.loop_scenarios import lived, pods

SIZES = [(cores, ratio) for cores in (2, 4, 8, 16, 32, 48, 64, 96) for ratio in (1, 2, 4, 6, 8)]


def test_all_are_planned_for_once_within_the_caps_and_near_the_bound():
    chance = random.Random(22)
    types = [
        {
            "name": f"t{number}",
            "cpu": cores,
            "memory": f"{cores * ratio}Gi",
            "price": 0.031611 * cores + 0.004237 * cores * ratio,
        }
        for number, (cores, ratio) in enumerate(SIZES)
    ]
    entries = []
    for number in range(300):
        cpu = chance.randint(100, 4000)
        memory = f"{int(cpu / 1000 * chance.uniform(0.8, 7.5) * 1024)}Mi"
        selector = {"pool": f"p{number % 5}"}
        entries.append(pods(f"s{number}", 100, cpu=f"{cpu}m", memory=memory, nodeSelector=selector))
    ended = lived(
        {"loop": 3},
        options={
            "node-autoprovisioning": True,
            "max-autoprovisioned-node-group-count": 60,
            "max-node-groups": 60,
            "autoprovisioned-group-max-size": 5000,
        },
        machineTypes=types,
        pods=entries,
    ).outcome
    plans = [loop["scaleUp"] for loop in ended["loops"]]
    assert [plan["helped"] for plan in plans] == [30_000] * 3
    assert len(ended["nodeGroups"]) <= 60
    prices = {type_["name"]: type_["price"] for type_ in types}
    cost = sum(group["target"] * prices[group["machineType"]] for group in ended["nodeGroups"].values())
    assert cost <= 1.05 * plans[0]["lowerBoundPerHour"], "and nothing was grown twice"
