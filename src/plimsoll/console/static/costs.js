// The page of costs: cost and bound over time, by group, and what removals saved.

import { lineChart } from "./charts.js";
import { el, quiet, refLink, table } from "./dom.js";
import { money, time } from "./format.js";
import { refresh } from "./pages.js";

/** @param {import("./pages.js").Page} page */
export function showCosts(page) {
  return refresh(page, "/api/costs", (data) => {
    const title = el("h1", {}, "Cost per hour");
    if (data.at.length < 1) return [title, quiet("The first sample is taken within half a minute of the start.")];
    const cost = data.cost[data.cost.length - 1];
    const bound = data.bound[data.bound.length - 1];
    return [
      title,
      el(
        "p",
        {},
        el("strong", {}, money(cost)),
        ` per hour for the nodes that are there. What their pods request cannot be had for less than ${money(bound)}`,
        bound > 0 ? `: ${(cost / bound).toFixed(2)} times as much is paid.` : ".",
      ),
      data.estimatedNodes ? quiet(`The price of ${data.estimatedNodes} nodes is an estimate by cores and memory.`) : null,
      lineChart({
        title: "Cost and lower bound",
        at: data.at,
        unit: "per hour",
        series: [
          { name: "cost", values: data.cost, steps: true },
          { name: "lower bound", values: data.bound, kind: "bound", steps: true },
        ],
      }),
      lineChart({
        title: "Cost by node group, one on top of the other",
        at: data.at,
        unit: "per hour",
        stacked: true,
        series: Object.entries(data.groups).map(([name, values]) => ({ name, values: /** @type {number[]} */ (values), steps: true })),
      }),
      el("h2", {}, `The last removals save ${money(data.savedPerHour)} per hour`),
      data.removals.length
        ? table(
            ["Time", "Node", "Group", "Saves per hour", "Why"],
            data.removals.map((/** @type {any} */ removal) => [
              time(removal.at),
              refLink(removal.ref),
              removal.group || "–",
              removal.saved === null ? "–" : money(removal.saved),
              removal.reason,
            ]),
          )
        : quiet("No node was removed."),
    ].filter((node) => node !== null);
  });
}
