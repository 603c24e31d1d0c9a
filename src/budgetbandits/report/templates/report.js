// What a reader may ask the page: hide a policy, read the numbers of a figure, sort a table, copy the file.
// Without this script everything is there to be read: it only adds.
"use strict";

const main = document.querySelector("main");
const make = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

// Policies: a button for each, the same state in every list of the page.
const names = new Map();
const marks = new Map();
const keys = [...document.querySelectorAll(".keys")];
const off = new Set();

function showPolicies() {
  for (const policy of names.keys()) main.classList.toggle(`off-${policy}`, off.has(policy));
  for (const button of document.querySelectorAll(".keys button[data-policy]")) {
    button.setAttribute("aria-pressed", String(!off.has(button.dataset.policy)));
  }
  for (const button of document.querySelectorAll(".keys .all")) button.textContent = off.size ? "Show all" : "Hide all";
  rescale(off);
  hideReadout();
}

for (const list of keys) {
  const items = [...list.children];
  for (const item of items) {
    const policy = item.dataset.policy;
    const button = make("button");
    button.type = "button";
    button.dataset.policy = policy;
    names.set(policy, item.textContent.trim());
    marks.set(policy, item.querySelector("svg"));
    button.append(...item.childNodes);
    item.removeAttribute("data-policy");
    item.append(button);
    button.addEventListener("click", () => {
      if (!off.delete(policy)) off.add(policy);
      showPolicies();
    });
  }
  if (items.length > 2) {
    const item = make("li");
    const all = make("button", "all");
    all.type = "button";
    all.addEventListener("click", () => {
      const hide = off.size === 0;
      off.clear();
      if (hide) for (const policy of names.keys()) off.add(policy);
      showPolicies();
    });
    item.append(all);
    list.append(item);
  }
}

// Figures: the numbers of all policies at the budget nearest to the pointer, or of the nearest point. A drawing
// whose points are read together says in data-read what they share.
const number = (value) => {
  const size = Math.abs(value);
  const text = size >= 100 ? value.toLocaleString("en", { maximumFractionDigits: 0 })
    : size >= 1 ? value.toFixed(1) : String(Number(value.toPrecision(3)));
  return text.replace("-", "−");
};
const readout = make("div", "readout");
const guide = make("div", "guide");
readout.setAttribute("role", "status");
readout.hidden = guide.hidden = true;
let asked = null; // {plot, points, panel, x} while the readout is shown

function hideReadout() {
  readout.hidden = guide.hidden = true;
  for (const point of document.querySelectorAll(".point.at")) point.classList.remove("at");
  asked = null;
}

// The points of a drawing that can be seen, with their places on the screen.
function pointsOf(plot) {
  return [...plot.querySelectorAll(".point")].map((element) => {
    const box = element.getBoundingClientRect();
    return {
      element, box, panel: element.id.replace(/-point-.*$/, ""), policy: element.dataset.policy,
      at: element.dataset.x, x: box.x + box.width / 2, y: box.y + box.height / 2,
      value: Number(element.dataset.y), low: element.dataset.low, high: element.dataset.high,
    };
  }).filter((point) => point.box.width > 0);
}

function nearestPoint(points, x, y) {
  let best = null;
  let least = Infinity;
  for (const point of points) {
    const distance = Math.hypot(point.x - x, point.y - y);
    if (distance < least) [best, least] = [point, distance];
  }
  return best;
}

// The panel whose points surround the place, or else the one whose nearest point is nearest.
function panelAt(points, x, y) {
  const boxes = new Map();
  for (const point of points) {
    const box = boxes.get(point.panel) ?? { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    boxes.set(point.panel, {
      left: Math.min(box.left, point.x), right: Math.max(box.right, point.x),
      top: Math.min(box.top, point.y), bottom: Math.max(box.bottom, point.y),
    });
  }
  const away = (box) => Math.hypot(
    Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
  return [...boxes].sort((a, b) => away(a[1]) - away(b[1]))[0];
}

function show(plot, points, panel, chosen, box) {
  hideReadout();
  const figure = plot.closest("figure");
  const rows = plot.dataset.read
    ? points.filter((point) => point.panel === panel && point.at === chosen.at).sort((a, b) => a.value - b.value)
    : [chosen];
  const table = make("table");
  for (const point of rows) {
    const row = make("tr", point === chosen ? "near" : "");
    const name = make("th");
    name.append(marks.get(point.policy)?.cloneNode(true) ?? "", names.get(point.policy) ?? "");
    row.append(name);
    if (plot.dataset.read) {
      row.append(make("td", "", number(point.value)));
      const ends = [Number(point.low), Number(point.high)];
      row.append(make("td", "pm", point.low === undefined ? "" : ends.map(number).join(ends[0] < 0 ? " to " : " – ")));
    }
    table.append(row);
    point.element.classList.add("at");
  }
  const said = plot.dataset.read ? `${plot.dataset.read} ${Number(chosen.at).toLocaleString("en")}`
    : chosen.element.dataset.said ?? "";
  readout.replaceChildren(make("div", "second", said), table);
  figure.append(guide, readout);
  readout.hidden = false;
  const origin = figure.getBoundingClientRect();
  if (plot.dataset.read) {
    guide.hidden = false;
    guide.style.left = `${chosen.x - origin.x}px`;
    guide.style.top = `${box.top - origin.y - 8}px`;
    guide.style.height = `${box.bottom - box.top + 16}px`;
  }
  const size = readout.getBoundingClientRect();
  const room = document.documentElement.clientWidth - origin.x;
  let left = chosen.x - origin.x + 16;
  if (left + size.width > room - 8) left = Math.max(chosen.x - origin.x - size.width - 16, 8 - origin.x);
  readout.style.left = `${left}px`;
  readout.style.top = `${Math.max(Math.min(chosen.y - origin.y - 24, origin.height - size.height), 0)}px`;
  asked = { plot, points, panel, chosen };
}

function ask(plot, x, y) {
  const points = pointsOf(plot);
  if (!points.length) return hideReadout();
  const [panel, box] = panelAt(points, x, y);
  const here = points.filter((point) => point.panel === panel);
  if (!plot.dataset.read) return show(plot, points, panel, nearestPoint(here, x, y), box);
  const near = here.reduce((a, b) => (Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a));
  return show(plot, points, panel, nearestPoint(here.filter((point) => point.at === near.at), near.x, y), box);
}

// Arrow keys: left and right along the line, up and down among the policies, page keys among the panels.
function step(plot, key) {
  const points = pointsOf(plot);
  if (!points.length) return false;
  const before = asked?.plot === plot ? asked.chosen : null;
  let chosen = before && points.find((point) => point.element === before.element);
  if (!chosen) {
    chosen = points[0];
  } else {
    const here = points.filter((point) => point.panel === chosen.panel);
    const across = plot.dataset.read
      ? here.filter((point) => point.policy === chosen.policy).sort((a, b) => a.x - b.x)
      : [...here].sort((a, b) => a.x - b.x);
    const along = plot.dataset.read
      ? here.filter((point) => point.at === chosen.at).sort((a, b) => a.y - b.y)
      : [...here].sort((a, b) => a.y - b.y);
    const panels = [...new Set(points.map((point) => point.panel))];
    const moved = (list, by) => list[Math.min(Math.max(list.indexOf(chosen) + by, 0), list.length - 1)];
    if (key === "ArrowLeft" || key === "ArrowRight") chosen = moved(across, key === "ArrowLeft" ? -1 : 1);
    else if (key === "ArrowUp" || key === "ArrowDown") chosen = moved(along, key === "ArrowUp" ? -1 : 1);
    else {
      const next = panels[(panels.indexOf(chosen.panel) + (key === "PageUp" ? -1 : 1) + panels.length) % panels.length];
      chosen = points.find((point) => point.panel === next);
    }
  }
  show(plot, points, chosen.panel, chosen, panelAt(points, chosen.x, chosen.y)[1]);
  return true;
}

for (const plot of document.querySelectorAll(".plot")) {
  if (!plot.querySelector(".point")) continue;
  for (const title of plot.querySelectorAll(".point > title")) { // the readout says it
    title.parentNode.dataset.said = title.textContent;
    title.remove();
  }
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", "Arrow keys read the values, page keys change the panel");
  plot.addEventListener("pointermove", (event) => ask(plot, event.clientX, event.clientY));
  plot.addEventListener("pointerdown", (event) => ask(plot, event.clientX, event.clientY));
  plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hideReadout(); });
  plot.addEventListener("blur", hideReadout);
  plot.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideReadout();
    else if (/^(Arrow|Page(Up|Down))/.test(event.key) && step(plot, event.key)) event.preventDefault();
  });
}
addEventListener("resize", hideReadout);

// Tables: a click on a head sorts by it, numbers by their value, words by the alphabet.
const valueOf = (cell) => {
  const text = cell.textContent.trim().replace(/,/g, "").replace(/^−/, "-");
  if (text === "–" || text === "") return NaN;
  const parsed = text.startsWith("∞") ? Infinity : text.startsWith("-∞") ? -Infinity : parseFloat(text);
  return Number.isNaN(parsed) ? text : parsed;
};
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
};
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = make("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
      rows.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

// Files: a button that copies.
for (const source of document.querySelectorAll(".source")) {
  const button = make("button", "button", "Copy");
  button.type = "button";
  button.addEventListener("click", async () => {
    const text = source.querySelector("pre").textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch { // a page from a disk may not be allowed to: then it is chosen, ready to be copied
      getSelection().selectAllChildren(source.querySelector("pre"));
      button.textContent = "Selected";
    }
  });
  source.append(button);
}

if (names.size) showPolicies();
