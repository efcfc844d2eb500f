// The start of the console: session, stream of changes, and the page that the address names.

import { getJson, openSession } from "./api.js";
import { Cluster } from "./cluster.js";
import { showCosts } from "./costs.js";
import { el, problem } from "./dom.js";
import { duration } from "./format.js";
import { showNodes } from "./nodes.js";
import { showDecisions, showFleet, showKafka, showOverview, showThing, showTidb, showWaiting } from "./pages.js";

const PAGES = { "": "Overview", nodes: "Nodes", waiting: "Waiting", decisions: "Decisions", cost: "Cost", kafka: "Kafka", tidb: "TiDB", fleet: "Fleet" };
const STALE_MS = 20_000;
const cluster = new Cluster();
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const news = /** @type {HTMLElement} */ (document.getElementById("news"));
let close = () => {};
let heardAt = Date.now();
let isConnected = false;

function route() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decode);
  const query = new URLSearchParams(search ?? "");
  close();
  const root = el("div", {});
  main.replaceChildren(root);
  const page = { root, query, path: parts.slice(1), isCurrent: () => root.isConnected };
  const name = parts[0];
  close = show(name, page);
  markCurrent(name);
  document.title = `${/** @type {any} */ (PAGES)[name] ?? page.path.join("/")} · Plimsoll`;
}

/** @param {string} name @param {import("./pages.js").Page} page @returns {() => void} */
function show(name, page) {
  switch (name) {
    case "":
      return showOverview(page);
    case "nodes":
      return showNodes(page, cluster);
    case "waiting":
      return showWaiting(page);
    case "decisions":
      return showDecisions(page);
    case "cost":
      return showCosts(page);
    case "things":
      return showThing(page);
    case "kafka":
      return showKafka(page);
    case "tidb":
      return showTidb(page);
    case "fleet":
      return showFleet(page);
    default:
      page.root.replaceChildren(problem("There is no such page."));
      return () => {};
  }
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** @param {string} current */
function markCurrent(current) {
  const nav = /** @type {HTMLElement} */ (document.getElementById("nav"));
  nav.replaceChildren(
    ...Object.entries(PAGES).map(([name, title]) => el("a", { href: `#/${name}`, "aria-current": name === current ? "page" : false }, title)),
  );
}

function listen() {
  const changes = new EventSource("/api/changes");
  changes.onopen = () => hear();
  changes.onerror = () => (isConnected = false);
  changes.addEventListener("snapshot", (event) => {
    hear();
    cluster.load(JSON.parse(event.data));
  });
  changes.addEventListener("changes", (event) => {
    hear();
    cluster.apply(JSON.parse(event.data));
  });
  changes.addEventListener("decision", () => hear());
  setInterval(showNews, 1_000);
}

function hear() {
  heardAt = Date.now();
  isConnected = true;
}

function showNews() {
  const silent = Date.now() - heardAt;
  const isStale = !isConnected && silent > 2_000;
  document.body.classList.toggle("stale", isStale);
  news.textContent = isStale ? `No connection: last news ${duration(silent / 1000)} ago` : silent > STALE_MS ? "Quiet" : "Live";
}

async function begin() {
  markCurrent("");
  try {
    await openSession();
    await getJson("/api/overview");
  } catch (error) {
    main.replaceChildren(problem(/** @type {Error} */ (error).message), el("p", {}, "Open the address that plimsoll printed at its start; it works once."));
    return;
  }
  addEventListener("hashchange", route);
  route();
  listen();
}

void begin();
