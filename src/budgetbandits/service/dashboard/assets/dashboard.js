// Signs in by a link, filters the list, checks forms while they are filled in, says the values of charts, copies.
// Every page works without it.
"use strict";

// Times are written by the server in this zone; the page is loaded again the first time that it is known.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const kept = document.cookie.split("; ").find((each) => each.startsWith("zone="));
if (kept !== `zone=${zone}`) {
  document.cookie = `zone=${zone}; path=${document.body.dataset.cookies}; max-age=31536000; samesite=strict`;
  if (document.cookie.includes(`zone=${zone}`) && document.getElementById("live")) location.reload();
}

// A link that signs in: what stands after # is never sent to a server, and does not stay in the address.
const linked = location.hash.match(/^#key=(bb_[\w-]+)$/);
const keyField = document.getElementById("key");
if (linked && keyField) {
  history.replaceState(null, "", location.pathname + location.search);
  keyField.value = linked[1];
  keyField.form.submit();
}

// The filter of the list works while a person types.
let waiting = 0;
document.addEventListener("input", (event) => {
  const filter = event.target.closest("[data-filter]");
  if (!filter) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    history.replaceState(null, "", `${filter.getAttribute("action")}?${new URLSearchParams(new FormData(filter))}`);
    draw();
  }, 150);
});
document.addEventListener("submit", (event) => {
  if (event.target.closest("[data-filter]")) event.preventDefault();
});

// What a form would do, said by the server while it is filled in. Only the answer to the newest question counts, and
// until it is there, nothing can be confirmed. What is wrong with a field is said next to it, once the field was left
// or wants to go on.
const form = document.querySelector("form[data-check]");
if (form) {
  const checked = document.getElementById("checked");
  const next = form.querySelector("[data-continue]");
  const slots = [...form.querySelectorAll("[data-wrong]")];
  const left = new Set(slots.filter((slot) => !slot.hidden).map((slot) => slot.dataset.wrong)); // fields to speak of
  let wrong = Object.fromEntries(slots.filter((slot) => !slot.hidden).map((slot) => [slot.dataset.wrong, slot.textContent]));
  let asking = null;
  let known = true; // whether what is wrong is known of what is typed now
  let failed = false;

  // What is said may move the button that is being pressed, and the press would be lost: it is said afterwards.
  const PRESS_SECONDS_MAX = 1.0;
  let released = Promise.resolve();
  document.addEventListener("pointerdown", () => {
    released = new Promise((end) => {
      for (const kind of ["pointerup", "pointercancel"]) document.addEventListener(kind, () => setTimeout(end), { once: true });
      setTimeout(end, 1000 * PRESS_SECONDS_MAX); // it may end outside the window
    });
  }, true);

  const nameOf = (field) => field.closest("[data-field]")?.dataset.field ?? field.name;

  const mark = () => {
    for (const slot of slots) {
      const name = slot.dataset.wrong;
      const words = left.has(name) ? wrong[name] ?? "" : "";
      if (slot.textContent !== words) slot.textContent = words;
      slot.hidden = !words;
      const field = document.getElementById(name);
      if (words) field?.setAttribute("aria-invalid", "true"); else field?.removeAttribute("aria-invalid");
      if (words) slot.closest("details")?.setAttribute("open", "");
    }
    const rest = checked.querySelector("[data-for='']");
    if (rest) rest.hidden = !left.size;
  };

  const unsay = () => {
    asking?.abort();
    asking = null;
    known = false;
    clearTimeout(waiting);
    const button = checked.querySelector("[data-confirm] button");
    if (button) { button.disabled = true; button.textContent = "Checking …"; }
    checked.setAttribute("aria-busy", "true");
  };

  // Then the form leads to a page of its own, as it does without scripts.
  const say = (why) => {
    failed = true;
    const words = document.createElement("p");
    words.className = "wrong";
    words.setAttribute("role", "status");
    words.textContent = `This could not be checked: ${why}. Continue to see on the next page what will happen.`;
    checked.replaceChildren(words);
    next.hidden = false;
  };

  const put = (text, goOn) => {
    const made = document.createElement("template");
    made.innerHTML = text;
    wrong = {};
    for (const each of made.content.querySelectorAll("[data-for]")) {
      wrong[each.dataset.for] = each.textContent;
      if (each.dataset.for) each.remove();
    }
    checked.replaceChildren(made.content);
    known = true;
    failed = false;
    const button = checked.querySelector("[data-confirm] button");
    next.hidden = Boolean(button);
    if (goOn) for (const name of ["", ...slots.map((slot) => slot.dataset.wrong)]) left.add(name);
    mark();
    if (goOn) (button ?? form.querySelector("[aria-invalid]"))?.focus();
  };

  const check = async (goOn) => {
    unsay();
    const mine = asking = new AbortController();
    try {
      const answer = await fetch(form.getAttribute("action"), {
        method: "POST", body: new URLSearchParams(new FormData(form)), headers: { "X-Part": goOn ? "submit" : "check" },
        cache: "no-store", signal: mine.signal,
      });
      const text = await answer.text();
      await released;
      if (mine !== asking) return;
      if (answer.ok) {
        put(text, goOn);
      } else {
        let why = `the server has answered ${answer.status}`;
        try { why = JSON.parse(text).detail || why; } catch { /* it was no answer of ours */ }
        say(why);
      }
    } catch {
      if (mine === asking) say("the server does not answer");
    } finally {
      if (mine === asking) checked.removeAttribute("aria-busy");
    }
  };

  // A browser may have kept what was typed before, or the whole page with a button that was pressed.
  const chosen = (list) => [...list.options].find((each) => each.defaultSelected) ?? list.options[0];
  const touched = (field) => field.type === "checkbox" ? field.checked !== field.defaultChecked
    : field.options ? field.options[field.selectedIndex] !== chosen(field)
      : "defaultValue" in field && field.value !== field.defaultValue;

  form.addEventListener("input", (event) => {
    left.delete(nameOf(event.target));
    left.delete("");
    mark();
    unsay();
    waiting = setTimeout(() => check(false), 200);
  });
  form.addEventListener("focusout", (event) => {
    if (!touched(event.target)) return;
    left.add(nameOf(event.target));
    released.then(() => { if (known) mark(); });
  });
  form.addEventListener("submit", (event) => {
    if (failed) return;
    event.preventDefault();
    check(true);
  });
  next.hidden = Boolean(checked.querySelector("[data-confirm]"));
  if ([...form.elements].some(touched)) check(false);
  window.addEventListener("pageshow", (event) => { if (event.persisted) check(false); });
}

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    const field = document.getElementById("q");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});

// Lines to copy have the address that this browser has asked: a proxy may have asked the server under another one.
function ownAddress() {
  for (const lines of document.querySelectorAll("pre[data-address]")) {
    const { address, prefix } = lines.dataset;
    lines.textContent = lines.textContent.replaceAll(address, location.origin + prefix);
  }
}
ownAddress();
document.addEventListener("drawn", ownAddress);

// Buttons that copy, where a browser lets a page do that.
const copies = [...document.querySelectorAll("[data-copy], [data-copy-of]")];
for (const button of copies) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const text = button.dataset.copy ?? document.getElementById(button.dataset.copyOf).textContent;
    const word = button.firstChild;
    try {
      await navigator.clipboard.writeText(text);
      word.textContent = "Copied";
    } catch {
      word.textContent = "Not allowed to copy";
    }
    setTimeout(() => { word.textContent = "Copy"; }, 2000);
  });
}

// Values of a chart, under the pointer or by the arrow keys. A page that is drawn again goes on showing them.
let shown = null; // { id, place }: the figure, and how far across

const valuesOf = (figure) => figure.dataset.values.split("\n").map((line) => {
  const space = line.indexOf(" ");
  return [Number(line.slice(0, space)), line.slice(space + 1)];
});

function hideValue() {
  for (const line of document.querySelectorAll(".pointer")) line.remove();
  for (const words of document.querySelectorAll(".readout")) words.textContent = "";
}

function showValue() {
  hideValue();
  const figure = shown && document.getElementById(shown.id);
  if (!figure) return;
  const values = valuesOf(figure);
  const [place, words] = values.reduce((best, each) => Math.abs(each[0] - shown.place) < Math.abs(best[0] - shown.place) ? each : best);
  for (const chart of figure.querySelectorAll("svg")) {
    const { left, right } = chart.dataset;
    const x = Number(left) + place * (Number(right) - Number(left));
    const line = document.createElementNS(chart.namespaceURI, "line");
    for (const [name, value] of Object.entries({ class: "pointer", x1: x, x2: x, y1: 14, y2: chart.viewBox.baseVal.height - 26 })) line.setAttribute(name, value);
    chart.append(line);
  }
  figure.querySelector(".readout").textContent = words;
}

document.addEventListener("pointermove", (event) => {
  const figure = event.target.closest?.("[data-values]");
  if (!figure) {
    if (shown?.pointed) { shown = null; hideValue(); }
    return;
  }
  const chart = event.target.closest("svg");
  if (!chart) return;
  const box = chart.getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
  const { left, right } = chart.dataset;
  shown = { id: figure.id, place: (x - Number(left)) / (Number(right) - Number(left)), pointed: true };
  showValue();
});
document.addEventListener("keydown", (event) => {
  const figure = event.target.closest?.("[data-values]");
  const ends = { Home: 0, End: Infinity };
  const steps = { ArrowLeft: -1, ArrowRight: 1, ...ends };
  if (!figure || !(event.key in steps)) return;
  event.preventDefault();
  const values = valuesOf(figure);
  const from = shown?.id === figure.id ? shown.place : 1;
  const now = values.reduce((best, each, at) => Math.abs(each[0] - from) < Math.abs(values[best][0] - from) ? at : best, 0);
  const wanted = event.key in ends ? ends[event.key] : now + (shown?.id === figure.id ? steps[event.key] : 0);
  shown = { id: figure.id, place: values[Math.min(Math.max(wanted, 0), values.length - 1)][0] };
  showValue();
});
document.addEventListener("focusout", (event) => {
  if (event.target.closest?.("[data-values]") && document.contains(event.target)) { shown = null; hideValue(); }
});
document.addEventListener("drawn", showValue);
