// The map: groups as boxes, nodes as cells, pods as strips by their share. Drawn on a canvas; one cell is redrawn when
// one cell changes. Colour shows utilisation, the edge shows the state.

import { NODE_STATES } from "./cluster.js";

/** @typedef {import("./cluster.js").Cluster} Cluster */
/** @typedef {{slot: number, x: number, y: number}} Cell */

const GAP = 3;
const BOX_PADDING = 8;
const BOX_TITLE = 20;
const SIZES = [8, 12, 18, 26, 40, 60, 90];
const STRIPS_FROM = 18;
const MOST_HEIGHT = 16_000;

export class ClusterMap extends EventTarget {
  /** @param {HTMLCanvasElement} canvas @param {Cluster} cluster */
  constructor(canvas, cluster) {
    super();
    this.canvas = canvas;
    this.cluster = cluster;
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser draws no canvas");
    this.context = context;
    /** @type {Cell[]} */
    this.cells = [];
    /** @type {Map<string, Cell>} */
    this.byName = new Map();
    /** @type {{title: string, count: number, x: number, y: number, width: number, height: number}[]} */
    this.boxes = [];
    this.selected = "";
    this.owner = "";
    this.filter = "";
    /** @type {number | null} the index of a size, null: the largest that fits */
    this.zoom = null;
    this.size = 18;
    this.drawn = 0;
    this.onChange = (/** @type {any} */ event) => this._onChange(event.detail);
    cluster.addEventListener("change", this.onChange);
    this.resized = new ResizeObserver(() => this.layOut());
    if (canvas.parentElement) this.resized.observe(canvas.parentElement);
    this.colours = readColours(document.documentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = readColours(document.documentElement);
      this.draw();
    });
  }

  close() {
    this.cluster.removeEventListener("change", this.onChange);
    this.resized.disconnect();
  }

  /** @param {number} step */
  zoomBy(step) {
    const at = this.zoom ?? SIZES.indexOf(this.size);
    this.zoom = Math.max(0, Math.min(SIZES.length - 1, at + step));
    this.layOut();
  }

  /** @param {string} name */
  select(name) {
    this.selected = name;
    this.draw();
    this.dispatchEvent(new CustomEvent("select", { detail: name }));
  }

  /** @param {string} owner */
  lightUp(owner) {
    this.owner = owner;
    this.draw();
  }

  /** The name of the node at a point of the canvas. @param {number} x @param {number} y */
  nodeAt(x, y) {
    const cell = this.cells.find((found) => x >= found.x && x < found.x + this.size && y >= found.y && y < found.y + this.size);
    return cell ? this.cluster.nodes.name[cell.slot] : "";
  }

  /** The node beside the selected one in a direction. @param {string} key */
  move(key) {
    const from = this.byName.get(this.selected) ?? this.cells[0];
    if (!from) return "";
    const ahead = this.cells.filter((cell) => {
      if (key === "ArrowRight") return cell.y === from.y && cell.x > from.x;
      if (key === "ArrowLeft") return cell.y === from.y && cell.x < from.x;
      return key === "ArrowDown" ? cell.y > from.y : cell.y < from.y;
    });
    const distance = (/** @type {Cell} */ cell) => Math.abs(cell.y - from.y) * 4 + Math.abs(cell.x - from.x);
    const next = ahead.reduce((/** @type {Cell | null} */ best, cell) => (!best || distance(cell) < distance(best) ? cell : best), null);
    return this.cluster.nodes.name[(next ?? from).slot];
  }

  /** Place all cells anew: after nodes came or went, or the width changed. */
  layOut() {
    const width = this.canvas.parentElement?.clientWidth ?? 800;
    if (!this.cluster.isLoaded || !width) return;
    const groups = this._groupNodes();
    const wanted = Math.max(300, innerHeight - 220);
    let height = 0;
    if (this.zoom !== null) {
      this.size = SIZES[this.zoom];
      height = this._place(groups, width);
    } else {
      for (const size of [...SIZES].reverse()) {
        this.size = size;
        height = this._place(groups, width);
        if (height <= wanted) break;
      }
    }
    const scale = height * devicePixelRatio > MOST_HEIGHT ? 1 : devicePixelRatio;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.draw();
  }

  draw() {
    const { context, colours } = this;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "top";
    for (const box of this.boxes) {
      context.strokeStyle = colours.line;
      context.lineWidth = 1;
      context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
      context.fillStyle = colours.text;
      context.fillText(clip(context, box.title, ` · ${box.count}`, box.width - 2 * BOX_PADDING), box.x + BOX_PADDING, box.y + 5);
    }
    for (const cell of this.cells) this._drawCell(cell);
    this.drawn += 1;
  }

  /** @returns {[string, number[]][]} */
  _groupNodes() {
    const { nodes } = this.cluster;
    /** @type {Map<string, number[]>} */
    const groups = new Map();
    nodes.name.forEach((name, slot) => {
      if (typeof name !== "string" || (this.filter && !this._matches(slot))) return;
      const group = this.cluster.nodeText(slot, "group");
      const slots = groups.get(group);
      if (slots) slots.push(slot);
      else groups.set(group, [slot]);
    });
    const order = new Intl.Collator("en", { numeric: true }).compare;
    for (const slots of groups.values()) slots.sort((one, other) => order(nodes.name[one], nodes.name[other]));
    return [...groups].sort(([one], [other]) => (one === "" ? 1 : other === "" ? -1 : order(one, other)));
  }

  /** @param {number} slot */
  _matches(slot) {
    const texts = [this.cluster.nodes.name[slot], ...["group", "zone", "type"].map((column) => this.cluster.nodeText(slot, column))];
    return texts.some((text) => text.toLowerCase().includes(this.filter));
  }

  /** Boxes side by side as far as they fit, then in the next row. @param {[string, number[]][]} groups @param {number} width */
  _place(groups, width) {
    this.cells = [];
    this.boxes = [];
    this.byName = new Map();
    const step = this.size + GAP;
    const perLine = Math.max(1, Math.floor((width - 2 * BOX_PADDING + GAP) / step));
    let [x, y, rowHeight] = [0, 0, 0];
    for (const [group, slots] of groups) {
      const columns = Math.min(perLine, Math.max(slots.length, Math.ceil(120 / step)), Math.max(Math.ceil(Math.sqrt(slots.length * 3)), Math.ceil(120 / step)));
      const boxWidth = columns * step - GAP + 2 * BOX_PADDING;
      const boxHeight = Math.ceil(slots.length / columns) * step - GAP + 2 * BOX_PADDING + BOX_TITLE;
      if (x && x + boxWidth > width) [x, y, rowHeight] = [0, y + rowHeight + GAP * 2, 0];
      this.boxes.push({ title: group || "no group", count: slots.length, x, y, width: Math.min(boxWidth, width), height: boxHeight });
      slots.forEach((slot, at) => {
        const cell = {
          slot,
          x: x + BOX_PADDING + (at % columns) * step,
          y: y + BOX_PADDING + BOX_TITLE + Math.floor(at / columns) * step,
        };
        this.cells.push(cell);
        this.byName.set(this.cluster.nodes.name[slot], cell);
      });
      x += boxWidth + GAP * 2;
      rowHeight = Math.max(rowHeight, boxHeight);
    }
    return y + rowHeight;
  }

  /** @param {Cell} cell */
  _drawCell({ slot, x, y }) {
    const { context, colours, cluster, size } = this;
    const state = NODE_STATES[cluster.nodes.state[slot]];
    context.clearRect(x - 2, y - 2, size + 4, size + 4);
    context.fillStyle = colours.empty;
    context.fillRect(x, y, size, size);
    if (size < STRIPS_FROM) {
      context.fillStyle = this._fillColour(cluster.utilisation(slot));
      context.fillRect(x, y, size, size);
    } else {
      this._drawStrips(slot, x, y);
    }
    const name = cluster.nodes.name[slot];
    const isSelected = name === this.selected;
    context.lineWidth = isSelected ? 3 : state === "ready" ? 1 : 2;
    context.strokeStyle = isSelected ? colours.text : colours[state];
    context.setLineDash(state === "starting" || state === "unneeded" ? [3, 2] : []);
    context.strokeRect(x, y, size, size);
    context.setLineDash([]);
    if (this.owner && cluster.podsOn(name).some((pod) => cluster.podText(pod, "owner") === this.owner)) {
      context.strokeStyle = colours.owner;
      context.lineWidth = 2;
      context.strokeRect(x + 2, y + 2, size - 4, size - 4);
    }
  }

  /** Pods from the bottom, each as high as its share of the node. @param {number} slot @param {number} x @param {number} y */
  _drawStrips(slot, x, y) {
    const { context, cluster, size, colours } = this;
    const { cpu, memory } = cluster.nodes;
    const fill = this._fillColour(cluster.utilisation(slot));
    let bottom = y + size;
    const pods = cluster.podsOn(cluster.nodes.name[slot]).sort((one, other) => cluster.pods.cpu[other] - cluster.pods.cpu[one]);
    for (const pod of pods) {
      const share = Math.max(cpu[slot] ? cluster.pods.cpu[pod] / cpu[slot] : 0, memory[slot] ? cluster.pods.memory[pod] / memory[slot] : 0);
      const height = Math.min(share * size, bottom - y);
      if (height <= 0) continue;
      const isLit = this.owner !== "" && cluster.podText(pod, "owner") === this.owner;
      context.fillStyle = isLit ? colours.owner : fill;
      context.fillRect(x, bottom - height, size, height > 2 ? height - 0.5 : height);
      bottom -= height;
    }
  }

  /** @param {number} share */
  _fillColour(share) {
    const steps = this.colours.scale;
    return steps[Math.max(0, Math.min(steps.length - 1, Math.floor(share * steps.length)))];
  }

  /** @param {{isNew: boolean, dirty: Set<string>}} detail */
  _onChange({ isNew, dirty }) {
    if (isNew) {
      this.layOut();
      return;
    }
    for (const name of dirty) {
      const cell = this.byName.get(name);
      if (cell) this._drawCell(cell);
    }
  }
}

/** @param {HTMLElement} element @returns {any} */
function readColours(element) {
  const style = getComputedStyle(element);
  const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const named = Object.fromEntries(["text", "line", "empty", "owner", ...NODE_STATES].map((name) => [name, read(name)]));
  return { ...named, scale: [1, 2, 3, 4, 5].map((step) => read(`use-${step}`)) };
}

/** The text with its end; the text is shortened to the width. @param {CanvasRenderingContext2D} context @param {string} text @param {string} end @param {number} width */
function clip(context, text, end, width) {
  if (context.measureText(text + end).width <= width) return text + end;
  let kept = text.length;
  while (kept > 1 && context.measureText(`${text.slice(0, kept)}…${end}`).width > width) kept -= 1;
  return `${text.slice(0, kept)}…${end}`;
}
