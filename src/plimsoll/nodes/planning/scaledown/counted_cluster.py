"""A cluster under simulation as counts per (term, domain): nodes leave, pods come and go, verdicts cost no recount.

`CountedCluster.refuses(rules, row)` answers what `scheduling` would answer about spread and inter-pod terms on the same
nodes with the same pods. Counters are copied when a class first needs them, and then updated by each change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.nodes.planning.scaledown.term_counts import Counted

if TYPE_CHECKING:
    from plimsoll.nodes.planning.scaledown.term_counts import (
        ClassRules,
        Counter,
        EligibleDomains,
        SpreadRule,
        TermCounts,
    )


class LiveCounter:
    """A counter that changes with a simulation."""

    __slots__ = ("_domains", "_eligible", "_held", "_levels", "counts", "opened", "skips_terminating", "total")

    def __init__(self, start: Counter) -> None:
        self._domains = start.topology.domains
        self._eligible = start.eligible
        self.skips_terminating = start.key.counted is Counted.STAYING_PODS
        self.counts = list(start.base)
        self.total = sum(count * domains for count, domains in start.levels.items())
        self.opened = 0
        """How often a domain got its first pod or lost its last one."""
        self._levels = dict(start.levels)
        self._held = sum(start.levels.values())
        """Domains that are not empty."""

    def add(self, row: int, amount: int) -> None:
        domain = self._domains[row]
        if domain < 0 or (self._eligible is not None and not self._eligible[row]):
            return
        before = self.counts[domain]
        after = self.counts[domain] = before + amount
        self.total += amount
        levels = self._levels
        if before:
            if levels[before] == 1:
                del levels[before]
            else:
                levels[before] -= 1
        if after:
            levels[after] = levels.get(after, 0) + 1
        if not before or not after:
            self.opened += 1
            self._held += bool(after) - bool(before)

    def get_count(self, row: int) -> int:
        """The count of the row's domain; 0 without the label."""
        domain = self._domains[row]
        return 0 if domain < 0 else self.counts[domain]

    def compute_minimum(self, domains: int) -> int:
        """The lowest count of so many domains, among which are all that are not empty."""
        return 0 if domains > self._held else min(self._levels, default=0)


class LiveDomains:
    """How many domains have an eligible row left."""

    __slots__ = ("_domains", "_eligible", "_nodes", "count")

    def __init__(self, start: EligibleDomains) -> None:
        self._domains = start.topology.domains
        self._eligible = start.eligible
        self._nodes = list(start.nodes)
        self.count = sum(1 for nodes in self._nodes if nodes)

    def add(self, row: int, nodes: int) -> None:
        """A row leaves (-1) or comes back (1)."""
        if self._eligible[row]:
            domain = self._domains[row]
            before = self._nodes[domain]
            after = self._nodes[domain] = before + nodes
            self.count += bool(after) - bool(before)


class CountedCluster:
    """The counts after everything that a simulation has done so far."""

    def __init__(self, counts: TermCounts) -> None:
        self._counts = counts
        self._arrays = counts.arrays
        self._counters: dict[int, LiveCounter] = {}
        self._domains: dict[int, LiveDomains] = {}
        self._by_group: dict[int, list[LiveCounter]] = {}
        self._by_owner: dict[int, list[LiveCounter]] = {}
        self._gone: dict[int, None] = {}
        self._placed: dict[tuple[int, int, int, bool], int] = {}
        """(label group, anti-affinity, row, terminating) to the number of pods."""

    def remove_node(self, row: int) -> None:
        """The node goes, with the pods that ran on it at the beginning."""
        self._gone[row] = None
        self._change_row(row, -1)

    def restore_node(self, row: int) -> None:
        del self._gone[row]
        self._change_row(row, 1)

    def is_gone(self, row: int) -> bool:
        return row in self._gone

    def _change_row(self, row: int, sign: int) -> None:
        running_pods = self._arrays.running_pods
        contents = running_pods.nodes[row]
        groups, total, staying = contents.count_labels(running_pods.label_groups)
        for number, pods, staying_pods in zip(groups.tolist(), total.tolist(), staying.tolist(), strict=True):
            for counter in self._by_group.get(number, ()):
                counter.add(row, sign * (staying_pods if counter.skips_terminating else pods))
        for number in contents.anti_affinity_groups:
            for counter in self._by_owner.get(number, ()):
                counter.add(row, sign)
        for domains in self._domains.values():
            domains.add(row, sign)

    def place(self, rules: ClassRules, row: int, *, leaving: bool, pods: int = 1) -> None:
        """Pods of a class come to the row; a negative number: they go away again."""
        key = (rules.label_group, rules.owner, row, leaving)
        self._placed[key] = self._placed.get(key, 0) + pods
        for counter in self._by_group.get(rules.label_group, ()):
            if not (leaving and counter.skips_terminating):
                counter.add(row, pods)
        for counter in self._by_owner.get(rules.owner, ()):
            counter.add(row, pods)

    def get_counter(self, number: int) -> LiveCounter:
        found = self._counters.get(number)
        if found is None:
            found = self._counters[number] = self._build_counter(self._counts.counters[number])
        return found

    def _build_counter(self, start: Counter) -> LiveCounter:
        """The counter as it stands now: rows that left and pods that moved before it was needed count too."""
        counter = LiveCounter(start)
        if self._gone:
            for row, amount in zip(start.rows.tolist(), start.amounts.tolist(), strict=True):
                if row in self._gone:
                    counter.add(row, -amount)
        is_owners = start.key.counted is Counted.OWNERS
        for (label_group, owner, row, leaving), pods in self._placed.items():
            number = owner if is_owners else label_group
            if pods and number in start.key.numbers and not (leaving and counter.skips_terminating):
                counter.add(row, pods)
        index = self._by_owner if is_owners else self._by_group
        for number in start.key.numbers:
            index.setdefault(number, []).append(counter)
        return counter

    def _get_domains(self, number: int) -> LiveDomains:
        found = self._domains.get(number)
        if found is None:
            found = self._domains[number] = LiveDomains(self._counts.domains[number])
            for row in self._gone:
                found.add(row, -1)
        return found

    # ---- verdicts

    def compute_minimum(self, rule: SpreadRule) -> int:
        domains = self._get_domains(rule.domains).count
        return self.get_counter(rule.counter).compute_minimum(domains) if domains >= rule.min_domains else 0

    def is_skewed(self, rule: SpreadRule, row: int) -> bool:
        """Whether one more pod on the row breaks a spread constraint."""
        count = self.get_counter(rule.counter).get_count(row) + rule.counts_itself
        return count - self.compute_minimum(rule) > rule.max_skew

    def lacks_affinity(self, rules: ClassRules, row: int) -> bool:
        """Whether the affinity is unmet on a row that has all labels."""
        counters = [self.get_counter(number) for number in rules.wanted]
        if all(counter.get_count(row) for counter in counters):
            return False
        return not rules.matches_itself or any(counter.total for counter in counters)

    def refuses(self, rules: ClassRules, row: int) -> bool:
        """Whether spread or inter-pod terms keep a pod of the class off the row."""
        if rules.labelled is not None and not rules.labelled[row]:
            return True
        return (
            any(self.is_skewed(rule, row) for rule in rules.spreads)
            or any(self.get_counter(number).get_count(row) for number in rules.avoided)
            or (bool(rules.wanted) and self.lacks_affinity(rules, row))
        )
