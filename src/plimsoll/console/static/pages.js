// Every page but the map: each is a function that fills an element, and returns what ends it.

import { getJson } from "./api.js";
import { el, problem, quiet, refLink, table } from "./dom.js";
import { sparkline } from "./charts.js";
import { ago, count, money, setServerTime, time } from "./format.js";
import { decisionLine, decisionParts } from "./reasons.js";

/** @typedef {{root: HTMLElement, query: URLSearchParams, path: string[], isCurrent: () => boolean}} Page */

const REFRESH_MS = 5_000;

/**
 * Load now and again, show what was loaded, or why nothing could be.
 * @param {Page} page @param {string} path @param {(data: any) => Node[]} show
 */
export function refresh(page, path, show) {
  let shown = "";
  let isClosed = false;
  const load = async () => {
    try {
      const data = await getJson(path);
      setServerTime(data.at);
      const text = JSON.stringify({ ...data, at: null });
      if (!isClosed && text !== shown && !hasOpen(page.root, shown)) {
        shown = text;
        page.root.replaceChildren(...show(data));
      }
      document.body.classList.remove("stale");
    } catch (error) {
      document.body.classList.add("stale");
      if (!shown && !isClosed) page.root.replaceChildren(problem(/** @type {Error} */ (error).message));
    }
  };
  void load();
  const timer = setInterval(load, REFRESH_MS);
  return () => {
    isClosed = true;
    clearInterval(timer);
  };
}

/** A page in which something is open is not replaced under the reader. @param {HTMLElement} root @param {string} shown */
function hasOpen(root, shown) {
  return shown !== "" && root.querySelector("details[open]") !== null;
}

/** @param {number} number */
const loadDecision = (number) => getJson(`/api/decisions/${number}`);

/** @param {Page} page */
export function showOverview(page) {
  return refresh(page, "/api/overview", (data) => [
    el("h1", {}, "Capacity at every level"),
    ...costLine(data.cost),
    el("div", { class: "cards" }, ...data.levels.map(levelCard)),
    el("h2", {}, "Newest decisions"),
    ...(data.newest.length
      ? data.newest.map((/** @type {any} */ decision) => decisionLine(decision, loadDecision))
      : [quiet("No controller has decided anything yet.")]),
  ]);
}

/** @param {any} cost */
function costLine(cost) {
  if (!cost) return [];
  const ratio = cost.ratio ? `, ${cost.ratio.toFixed(2)} times the lower bound of ${money(cost.boundPerHour)}` : "";
  return [
    el(
      "a",
      { class: "card cost", href: "#/cost" },
      el("p", {}, el("strong", {}, money(cost.perHour)), ` per hour${ratio}`),
      sparkline(cost.trend, "cost per hour since the start"),
    ),
  ];
}

/** @param {any} level */
function levelCard(level) {
  const number = level.count === null ? el("p", { class: "number none" }, "–") : el("p", { class: "number" }, level.count.toLocaleString("en"));
  return el(
    "a",
    { class: "card", href: `#/${level.page}` },
    el("h2", {}, level.name),
    number,
    el("p", {}, level.count === null ? level.detail || `no ${level.noun} is known` : `${level.noun}${level.count === 1 ? "" : "s"}${level.detail ? `: ${level.detail}` : ""}`),
    level.last
      ? el("p", { class: "last" }, el("time", { datetime: level.last.at }, ago(level.last.at)), ` ${level.last.sentence}`)
      : level.start
        ? el("p", { class: "last" }, "No decisions are known. Start: ", el("code", {}, level.start))
        : el("p", { class: "last" }, "Runs, and has decided nothing yet."),
  );
}

/** @param {Page} page */
export function showDecisions(page) {
  const { query } = page;
  const list = el("div", { id: "decisions" }, quiet("Loading …"));
  const fields = [
    field("Level", "subsystem", query, ["", "nodes", "kafka", "tidb", "fleet"]),
    field("Object", "ref", query),
    field("Verb", "verb", query),
    field("Text", "text", query),
  ];
  const form = el("form", { class: "filters", role: "search" }, ...fields, el("button", {}, "Filter"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = new URLSearchParams();
    for (const [name, value] of new FormData(/** @type {HTMLFormElement} */ (form))) if (value) given.set(name, String(value));
    location.hash = `#/decisions?${given}`;
  });
  page.root.replaceChildren(el("h1", {}, "Decisions, and what was left alone"), form, list);
  return refresh({ ...page, root: list }, `/api/decisions?limit=100&${query}`, (data) =>
    data.decisions.length
      ? data.decisions.map((/** @type {any} */ decision) => decisionLine(decision, loadDecision))
      : [quiet("No decision matches.")],
  );
}

/** @param {string} label @param {string} name @param {URLSearchParams} query @param {string[]} [choices] */
function field(label, name, query, choices) {
  const value = query.get(name) ?? "";
  const input = choices
    ? el("select", { name }, ...choices.map((choice) => el("option", { value: choice, selected: choice === value }, choice || "all")))
    : el("input", { name, value, autocomplete: "off" });
  return el("label", {}, label, " ", input);
}

/** @param {Page} page */
export function showWaiting(page) {
  return refresh(page, "/api/waiting", (data) => [
    el("h1", {}, "What waits, and why"),
    el("h2", {}, "Pods without a node"),
    ...(data.pods.length ? data.pods.map(waitingGroup) : [quiet("Every pod has a node.")]),
    el("h2", {}, "Requests for capacity"),
    data.requestsProblem ? quiet(data.requestsProblem) : requestTable(data.requests),
  ]);
}

/** @param {any} group */
function waitingGroup(group) {
  return el(
    "details",
    { class: "decision" },
    el("summary", {}, el("strong", {}, count(group.count, "pod")), ` since ${time(group.since)}: ${group.reason}`),
    el("ul", { class: "refs" }, ...group.pods.map((/** @type {string} */ ref) => el("li", {}, refLink(ref)))),
  );
}

/** @param {any[]} requests */
function requestTable(requests) {
  if (!requests.length) return quiet("There are no ProvisioningRequests.");
  return table(
    ["Request", "Class", "Pods", "State", "Since", "Last condition"],
    requests.map((request) => [
      refLink(request.ref),
      request.class,
      request.pods,
      request.state,
      time(request.created),
      request.conditions.at(-1)?.message ?? "–",
    ]),
  );
}

/** @param {Page} page */
export function showThing(page) {
  const ref = page.path.join("/");
  return refresh(page, `/api/things/${page.path.map(encodeURIComponent).join("/")}`, (thing) => [
    el("h1", {}, ref),
    thing.exists === false && quiet("It does not exist any more."),
    thing.facts.length ? factList(thing.facts) : null,
    thing.nodes.length ? el("h2", {}, count(thing.nodes.length, "node")) : null,
    thing.nodes.length ? table(["Node", "State"], thing.nodes.map((/** @type {any} */ node) => [refLink(node.ref), node.state])) : null,
    thing.pods.length ? el("h2", {}, count(thing.pods.length, "pod")) : null,
    thing.pods.length
      ? table(
          ["Pod", "Owner", "Cpu", "Memory", "Phase"],
          thing.pods.map((/** @type {any} */ pod) => [refLink(pod.ref), pod.owner || "–", pod.cpu, pod.memory, pod.phase]),
        )
      : null,
    el("h2", {}, "Why"),
    ...(thing.decisions.length
      ? thing.decisions.map((/** @type {any} */ decision) =>
          el("section", { class: "why" }, el("h3", {}, `${time(decision.at)}, ${decision.subsystem}`), decisionParts(decision)),
        )
      : [quiet("No decision names it.")]),
    el("h2", {}, "Events"),
    thing.eventsProblem ? problem(thing.eventsProblem) : eventTable(thing.events),
  ].filter((/** @type {any} */ node) => node instanceof Node));
}

/** @param {any[]} facts */
function factList(facts) {
  return el("dl", {}, ...facts.flatMap((fact) => [el("dt", {}, fact.name), el("dd", {}, fact.ref ? refLink(fact.ref, fact.value) : fact.value || "–")]));
}

/** @param {any[]} events */
function eventTable(events) {
  if (!events.length) return quiet("There are no Events.");
  return table(
    ["Time", "Type", "Reason", "Message", "From"],
    events.map((event) => [time(event.at), event.type, event.count > 1 ? `${event.reason} ×${event.count}` : event.reason, event.message, event.from]),
  );
}

/** @param {Page} page */
export function showKafka(page) {
  return refresh(page, "/api/kafka", (data) => {
    const title = el("h1", {}, "Kafka clusters");
    if (!data.clusters) return [title, quiet(`${data.problem}.`), start("plimsoll run kafka")];
    if (!data.clusters.length) return [title, quiet("There is no Kafka yet."), start("kubectl apply -f examples/kafka/cluster.yaml")];
    return [title, ...data.clusters.map(kafkaCluster)];
  });
}

/** @param {any} cluster */
function kafkaCluster(cluster) {
  const ref = `kafka/${cluster.namespace}/${cluster.name}`;
  return el(
    "section",
    { class: "card wide" },
    el("h2", {}, refLink(ref)),
    el("p", {}, `Ready: ${cluster.ready || "unknown"}. Automatic rebalancing: ${cluster.state || "not used yet"}.`),
    cluster.problem ? problem(cluster.problem) : null,
    table(
      ["Pool", "Roles", "Replicas", "Node ids"],
      cluster.pools.map((/** @type {any} */ pool) => [pool.name, pool.roles.join(", "), pool.replicas, pool.nodeIds.join(", ") || "–"]),
    ),
    cluster.rebalances.length
      ? table(
          ["KafkaRebalance", "State", "Message"],
          cluster.rebalances.map((/** @type {any} */ rebalance) => [refLink(`kafkarebalance/${cluster.namespace}/${rebalance.name}`, rebalance.name), rebalance.state, rebalance.message || "–"]),
        )
      : quiet("No rebalance is there."),
  );
}

/** @param {Page} page */
export function showTidb(page) {
  return refresh(page, "/api/tidb", (data) => {
    const title = el("h1", {}, "TiDB autoscalers");
    if (!data.autoscalers) return [title, quiet(`${data.problem}.`), start("plimsoll run tidb")];
    if (!data.autoscalers.length) return [title, quiet("There is no autoscaler yet."), start("kubectl apply -f examples/tidb/breathing.yaml")];
    return [title, ...data.autoscalers.map(tidbAutoscaler)];
  });
}

/** @param {any} autoscaler */
function tidbAutoscaler(autoscaler) {
  return el(
    "section",
    { class: "card wide" },
    el("h2", {}, refLink(autoscaler.ref)),
    el("p", {}, `TidbCluster ${autoscaler.cluster}`),
    autoscaler.groups.length
      ? table(
          ["Component", "Group", "Replicas", "Wanted", "Last direction", "Reason", "Last change"],
          autoscaler.groups.map((/** @type {any} */ group) => [group.component, group.group, group.replicas ?? "–", group.wanted ?? "–", group.direction || "–", group.reason || "–", time(group.at)]),
        )
      : quiet("No group was scaled yet."),
    table(
      ["Condition", "Status", "Reason", "Message"],
      autoscaler.conditions.map((/** @type {any} */ condition) => [condition.type, condition.status, condition.reason, condition.message]),
    ),
  );
}

/** @param {Page} page */
export function showFleet(page) {
  return refresh(page, "/api/fleet", (data) => {
    const title = el("h1", {}, "Clusters in regions");
    if (!data.clusters) return [title, quiet(`${data.problem}.`), start("plimsoll run fleet")];
    return [
      title,
      data.clusters.length ? el("div", { class: "cards" }, ...data.clusters.map(fleetCluster)) : quiet("The fleet has no clusters."),
      el("h2", {}, "Requests for Kafkas"),
      data.kafkas.length
        ? table(
            ["Kafka", "Plan", "Region", "Status", "Cluster", "Since", "Reason"],
            data.kafkas.map((/** @type {any} */ kafka) => [kafka.name, kafka.plan, kafka.region, kafka.status, kafka.cluster || "–", time(kafka.created), kafka.reason || "–"]),
          )
        : quiet("There are no requests."),
    ];
  });
}

/** @param {any} cluster */
function fleetCluster(cluster) {
  const units = Object.entries(cluster.units).map(([name, use]) =>
    el("p", {}, `${name}: ${use.used} of ${use.maximum} units `, el("meter", { min: 0, max: Math.max(use.maximum, 1), value: use.used })),
  );
  return el(
    "section",
    { class: "card" },
    el("h2", {}, refLink(`cluster/${cluster.id}`, cluster.clusterId || cluster.id)),
    el("p", {}, `${cluster.cloudProvider} ${cluster.region}: `, el("strong", {}, cluster.status.replaceAll("_", " "))),
    ...units,
    el("p", { class: "last" }, cluster.reason || "No decision names it yet."),
  );
}

/** @param {string} command */
function start(command) {
  return el("p", {}, "Start: ", el("code", {}, command));
}
