// The page of nodes: the map, what is under the pointer, and the same as a list.

import { ClusterMap } from "./map.js";
import { NODE_STATES } from "./cluster.js";
import { el, quiet, refLink, table } from "./dom.js";
import { cores, count, memory, percent } from "./format.js";

/** @typedef {import("./cluster.js").Cluster} Cluster */

const MOST_ROWS = 500;

/** @param {import("./pages.js").Page} page @param {Cluster} cluster */
export function showNodes(page, cluster) {
  const canvas = /** @type {HTMLCanvasElement} */ (el("canvas", { id: "map", tabindex: "0", role: "img", "aria-label": "Map of nodes. Arrow keys choose a node, Enter opens it." }));
  const holder = el("div", { class: "map" }, canvas);
  const told = el("div", { class: "under", id: "under", role: "status" }, "Point at a node, or move with the arrow keys.");
  const list = el("div", { hidden: true });
  const summary = el("p", { class: "quiet", id: "summary" });
  const filter = /** @type {HTMLInputElement} */ (el("input", { type: "search", placeholder: "name, group, zone or type", "aria-label": "Filter nodes" }));
  const view = el("button", { type: "button", "aria-pressed": "false" }, "As a list");
  const map = new ClusterMap(canvas, cluster);
  const tools = el(
    "div",
    { class: "filters" },
    filter,
    el("button", { type: "button", "aria-label": "Smaller", onclick: () => map.zoomBy(-1) }, "−"),
    el("button", { type: "button", "aria-label": "Larger", onclick: () => map.zoomBy(1) }, "+"),
    view,
    legend(),
  );
  page.root.replaceChildren(el("h1", {}, "Nodes"), summary, tools, told, holder, list);

  const describe = (/** @type {string} */ name) => told.replaceChildren(...describeNode(cluster, name, (owner) => map.lightUp(owner)));
  map.addEventListener("select", (event) => describe(/** @type {CustomEvent} */ (event).detail));
  canvas.addEventListener("pointermove", (event) => {
    const name = map.nodeAt(event.offsetX, event.offsetY);
    if (name && name !== map.selected) map.select(name);
  });
  canvas.addEventListener("click", (event) => {
    const name = map.nodeAt(event.offsetX, event.offsetY);
    if (name) location.hash = `#/things/node/${encodeURIComponent(name)}`;
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      map.select(map.move(event.key));
    } else if (event.key === "Enter" && map.selected) {
      location.hash = `#/things/node/${encodeURIComponent(map.selected)}`;
    }
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      map.zoomBy(event.deltaY < 0 ? 1 : -1);
    },
    { passive: false },
  );
  const update = () => {
    summary.textContent = summarize(cluster);
    if (!list.hidden) list.replaceChildren(nodeTable(cluster, filter.value.toLowerCase()));
  };
  filter.addEventListener("input", () => {
    map.filter = filter.value.toLowerCase();
    map.layOut();
    update();
  });
  view.addEventListener("click", () => {
    list.hidden = !list.hidden;
    holder.hidden = !list.hidden;
    view.setAttribute("aria-pressed", String(!list.hidden));
    update();
    map.layOut();
  });
  cluster.addEventListener("change", update);
  if (cluster.isLoaded) {
    update();
    map.layOut();
  } else {
    summary.textContent = "Loading …";
  }
  return () => {
    cluster.removeEventListener("change", update);
    map.close();
  };
}

/** @param {Cluster} cluster */
function summarize(cluster) {
  const pods = cluster.pods.name.filter((name) => typeof name === "string").length;
  const waiting = cluster.podsOn("").length;
  return `${count(cluster.nodeSlots.size, "node")}, ${count(pods, "pod")}${waiting ? `, ${waiting} without a node` : ""}`;
}

/** @param {Cluster} cluster @param {string} name @param {(owner: string) => void} lightUp */
function describeNode(cluster, name, lightUp) {
  const slot = cluster.nodeSlots.get(name);
  if (slot === undefined) return [quiet("Point at a node, or move with the arrow keys.")];
  const used = cluster.used(name);
  const { cpu, memory: room, state } = cluster.nodes;
  const owners = new Map();
  for (const pod of cluster.podsOn(name)) {
    const owner = cluster.podText(pod, "owner") || "no owner";
    owners.set(owner, (owners.get(owner) ?? 0) + 1);
  }
  const top = [...owners].sort((one, other) => other[1] - one[1]).slice(0, 6);
  return [
    el("strong", {}, refLink(`node/${name}`, name)),
    ` ${NODE_STATES[state[slot]]}, ${cluster.nodeText(slot, "type")} ${cluster.nodeText(slot, "zone")}: ${percent(cluster.utilisation(slot))} requested (${cores(used.cpu)} of ${cores(cpu[slot])}, ${memory(used.memory)} of ${memory(room[slot])}), ${count(cluster.podsOn(name).length, "pod")} `,
    ...top.map(([owner, number]) => el("button", { type: "button", class: "owner", onclick: () => lightUp(owner) }, `${owner} ×${number}`)),
  ];
}

/** @param {Cluster} cluster @param {string} filter */
function nodeTable(cluster, filter) {
  const rows = [...cluster.nodeSlots].filter(([name, slot]) =>
    [name, ...["group", "zone", "type"].map((column) => cluster.nodeText(slot, column))].some((text) => text.toLowerCase().includes(filter)),
  );
  rows.sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true }));
  const shown = rows.slice(0, MOST_ROWS).map(([name, slot]) => [
    refLink(`node/${name}`, name),
    cluster.nodeText(slot, "group") || "–",
    cluster.nodeText(slot, "zone") || "–",
    cluster.nodeText(slot, "type") || "–",
    NODE_STATES[cluster.nodes.state[slot]],
    percent(cluster.utilisation(slot)),
    cluster.podsOn(name).length,
  ]);
  const found = table(["Node", "Group", "Zone", "Type", "State", "Requested", "Pods"], shown);
  return rows.length > MOST_ROWS ? el("div", {}, quiet(`The first ${MOST_ROWS} of ${rows.length}: filter them.`), found) : found;
}

function legend() {
  return el(
    "span",
    { class: "legend" },
    "requested ",
    ...[1, 2, 3, 4, 5].map((step) => el("i", { class: `use use-${step}`, title: `${(step - 1) * 20} to ${step * 20} %` })),
    ...NODE_STATES.slice(1, 6).map((state) => el("span", {}, el("i", { class: `edge edge-${state}` }), state)),
  );
}
