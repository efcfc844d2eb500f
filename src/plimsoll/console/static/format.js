// Numbers and times as people read them.

/** @param {string | null | undefined} moment */
export function time(moment) {
  if (!moment) return "–";
  const date = new Date(moment);
  return Number.isNaN(date.getTime()) ? "–" : date.toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

let aheadMs = 0;

/** Ages are counted by the clock of the server: that of this machine may be wrong. @param {unknown} moment */
export function setServerTime(moment) {
  const time = typeof moment === "string" ? new Date(moment).getTime() : Number.NaN;
  if (Number.isFinite(time)) aheadMs = time - Date.now();
}

/** @param {string | null | undefined} moment @param {number} [now] */
export function ago(moment, now = Date.now() + aheadMs) {
  if (!moment) return "–";
  const seconds = (now - new Date(moment).getTime()) / 1000;
  return Number.isFinite(seconds) ? `${duration(Math.max(0, seconds))} ago` : "–";
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/** @param {number} share */
export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

/** @param {number} milli */
export function cores(milli) {
  return `${Number((milli / 1000).toFixed(2))} cores`;
}

/** @param {number} mib */
export function memory(mib) {
  return mib >= 1024 ? `${Number((mib / 1024).toFixed(1))} GiB` : `${mib} MiB`;
}

/** @param {number} number @param {string} noun */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** @param {number} amount */
export function money(amount) {
  return amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: amount < 1 ? 4 : 2 });
}
