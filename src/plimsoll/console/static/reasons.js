// Decisions and their reasons: a line each, which opens to the tree of causes and facts.

import { el, refLink } from "./dom.js";
import { ago, time } from "./format.js";

/** @param {any} reason @returns {HTMLElement} */
export function reasonTree(reason) {
  const facts = Object.entries(reason.facts ?? {});
  const below = [
    ...(reason.because ?? []).map((/** @type {any} */ cause) => el("li", {}, reasonTree(cause))),
    ...facts.map(([name, value]) => el("li", { class: "fact" }, `${name}: ${formatFact(value)}`)),
  ];
  const line = el("span", {}, reason.message, " ", el("code", {}, reason.code));
  if (!below.length) return line;
  return el("details", {}, el("summary", {}, line), el("ul", {}, ...below));
}

/** @param {any} value */
function formatFact(value) {
  if (Array.isArray(value)) return value.length > 20 ? `${value.slice(0, 20).join(", ")} and ${value.length - 20} more` : value.join(", ");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}

/** What one decision did and did not do. @param {any} decision */
export function decisionParts(decision) {
  const items = [
    ...decision.actions.map((/** @type {any} */ action) =>
      el(
        "li",
        { class: `result-${action.result.toLowerCase()}` },
        el("strong", {}, `${action.verb} `),
        refLink(action.target),
        formatArguments(action.arguments),
        el("span", { class: "result" }, ` ${action.result}`),
        el("div", {}, reasonTree(action.reason)),
        action.outcome && el("div", {}, reasonTree(action.outcome)),
      ),
    ),
    ...decision.notDone.map((/** @type {any} */ left) =>
      el("li", { class: "left" }, ...aboutLinks(left), ` ${left.what}`, el("div", {}, reasonTree(left.reason))),
    ),
  ];
  return items.length ? el("ul", { class: "parts" }, ...items) : el("p", { class: "quiet" }, "Nothing was to be done.");
}

/** @param {any} left */
function aboutLinks(left) {
  const shown = left.about.slice(0, 10);
  const more = left.about.length - shown.length + left.unnamed;
  const links = shown.flatMap((/** @type {string} */ ref, /** @type {number} */ at) => (at ? [", ", refLink(ref)] : [refLink(ref)]));
  return more ? [...links, `${shown.length ? " and " : ""}${more} more`] : links;
}

/** @param {Record<string, any>} given */
function formatArguments(given) {
  return Object.entries(given)
    .map(([name, value]) => ` ${name}=${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join("");
}

/** A line of the timeline. @param {any} decision @param {(number: number) => Promise<any>} load */
export function decisionLine(decision, load) {
  const body = el("div", { class: "body" });
  const details = el(
    "details",
    { class: decision.done ? "decision acted" : "decision", "data-number": decision.number },
    el(
      "summary",
      {},
      el("time", { datetime: decision.at, title: time(decision.at) }, ago(decision.at)),
      " ",
      el("span", {}, decision.sentence),
    ),
    body,
  );
  details.addEventListener("toggle", async () => {
    if (!(/** @type {HTMLDetailsElement} */ (details).open) || body.childElementCount) return;
    try {
      body.replaceChildren(decisionParts(await load(decision.number)));
    } catch (error) {
      body.replaceChildren(el("p", { class: "problem" }, String(error)));
    }
  });
  return details;
}
