// Elements are made here and nowhere else. Text of objects becomes text nodes: no markup is ever parsed.

/**
 * Make an element. Attributes whose value is false or null are left out; `on…` attributes are listeners.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : printable(String(child)));
  }
  return element;
}

/**
 * Text without characters that would reorder or hide what stands around it.
 * @param {string} text
 * @returns {string}
 */
export function printable(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/**
 * A link to the page of an object, `pod/default/web-0`.
 * @param {string} ref
 * @param {string} [text]
 */
export function refLink(ref, text) {
  return el("a", { class: "ref", href: `#/things/${ref.split("/").map(encodeURIComponent).join("/")}` }, text ?? ref);
}

/**
 * A table that scrolls in itself where the screen is narrow.
 * @param {string[]} heading
 * @param {(Node | string | number)[][]} rows
 */
export function table(heading, rows) {
  return el(
    "div",
    { class: "scroll", tabindex: "0" },
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ...heading.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell))))),
    ),
  );
}

/** @param {string} text */
export function quiet(text) {
  return el("p", { class: "quiet" }, text);
}

/** @param {string} text */
export function problem(text) {
  return el("p", { class: "problem", role: "alert" }, text);
}
