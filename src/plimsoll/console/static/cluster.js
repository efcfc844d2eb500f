// The nodes and pods of the cluster in columns, as the server sends them: a whole map first, then changes.

export const NODE_STATES = ["ready", "starting", "cordoned", "unneeded", "draining", "failed", "unreadable"];
export const POD_PHASES = ["running", "pending", "starting", "ending"];

/**
 * @typedef {Record<string, any[]>} Columns
 * @typedef {{slots: number[], gone: number[], rows: Columns}} TableChange
 * @typedef {{nodes: Columns, pods: Columns, names: Record<string, Columns>, version: number, at: string}} Snapshot
 */

export class Cluster extends EventTarget {
  constructor() {
    super();
    /** @type {Columns} */
    this.nodes = {};
    /** @type {Columns} */
    this.pods = {};
    /** @type {Record<string, Columns>} */
    this.names = {};
    /** @type {Map<string, number>} */
    this.nodeSlots = new Map();
    /** @type {Map<string, Set<number>>} */
    this.podsByNode = new Map();
    /** @type {string[]} the node on which each pod was placed last */
    this.placed = [];
    this.isLoaded = false;
    this.at = "";
  }

  /** @param {Snapshot} snapshot */
  load(snapshot) {
    this.nodes = snapshot.nodes;
    this.pods = snapshot.pods;
    this.names = snapshot.names;
    this.at = snapshot.at;
    this.nodeSlots.clear();
    this.podsByNode.clear();
    this.nodes.name.forEach((name, slot) => typeof name === "string" && this.nodeSlots.set(name, slot));
    this.pods.name.forEach((name, slot) => typeof name === "string" && this._place(slot));
    this.isLoaded = true;
    this.dispatchEvent(new CustomEvent("change", { detail: { isNew: true, dirty: new Set() } }));
  }

  /** @param {any} changes */
  apply(changes) {
    const dirty = new Set();
    for (const [tableName, columns] of Object.entries(changes.names)) {
      for (const [column, { slots, values }] of Object.entries(columns)) {
        slots.forEach((/** @type {number} */ slot, /** @type {number} */ at) => (this.names[tableName][column][slot] = values[at]));
      }
    }
    this._applyPods(changes.pods, dirty);
    const isNew = this._applyNodes(changes.nodes, dirty);
    this.at = changes.at;
    this.dispatchEvent(new CustomEvent("change", { detail: { isNew, dirty } }));
  }

  /** @param {number} slot */
  nodeOf(slot) {
    return this.names.pods.node[this.pods.node[slot]] ?? "";
  }

  /** @param {string} name @returns {number[]} */
  podsOn(name) {
    return [...(this.podsByNode.get(name) ?? [])];
  }

  /** What the pods of a node request, in millicores and MiB. @param {string} name */
  used(name) {
    let cpu = 0;
    let memory = 0;
    for (const slot of this.podsByNode.get(name) ?? []) {
      cpu += this.pods.cpu[slot];
      memory += this.pods.memory[slot];
    }
    return { cpu, memory };
  }

  /** The larger share of cpu and memory that is requested on a node, 0 to 1 and above. @param {number} slot */
  utilisation(slot) {
    const used = this.used(this.nodes.name[slot]);
    const { cpu, memory } = this.nodes;
    return Math.max(cpu[slot] ? used.cpu / cpu[slot] : 0, memory[slot] ? used.memory / memory[slot] : 0);
  }

  /** @param {number} slot @param {string} column */
  nodeText(slot, column) {
    return this.names.nodes[column][this.nodes[column][slot]] ?? "";
  }

  /** @param {number} slot @param {string} column */
  podText(slot, column) {
    return this.names.pods[column][this.pods[column][slot]] ?? "";
  }

  /** @param {number} slot */
  _place(slot) {
    const node = this.nodeOf(slot);
    let slots = this.podsByNode.get(node);
    if (!slots) this.podsByNode.set(node, (slots = new Set()));
    slots.add(slot);
    this.placed[slot] = node;
    return node;
  }

  /** @param {number} slot @returns {string} */
  _displace(slot) {
    const node = this.placed[slot] ?? "";
    const slots = this.podsByNode.get(node);
    slots?.delete(slot);
    if (slots && !slots.size) this.podsByNode.delete(node);
    return node;
  }

  /** @param {TableChange} change @param {Set<string>} dirty */
  _applyPods(change, dirty) {
    for (const slot of [...change.gone, ...change.slots]) {
      if (typeof this.pods.name[slot] === "string") dirty.add(this._displace(slot));
    }
    for (const slot of change.gone) this.pods.name[slot] = null;
    change.slots.forEach((slot, at) => {
      for (const column of Object.keys(change.rows)) this.pods[column][slot] = change.rows[column][at];
      dirty.add(this._place(slot));
    });
  }

  /** @param {TableChange} change @param {Set<string>} dirty @returns {boolean} whether cells came, went or moved */
  _applyNodes(change, dirty) {
    let isNew = change.gone.length > 0;
    for (const slot of change.gone) {
      this.nodeSlots.delete(this.nodes.name[slot]);
      this.nodes.name[slot] = null;
    }
    change.slots.forEach((slot, at) => {
      const before = [this.nodes.name[slot], this.nodes.group[slot]];
      for (const column of Object.keys(change.rows)) this.nodes[column][slot] = change.rows[column][at];
      isNew ||= before[0] !== this.nodes.name[slot] || before[1] !== this.nodes.group[slot];
      if (before[0] && before[0] !== this.nodes.name[slot]) this.nodeSlots.delete(before[0]);
      this.nodeSlots.set(this.nodes.name[slot], slot);
      dirty.add(this.nodes.name[slot]);
    });
    return isNew;
  }
}
