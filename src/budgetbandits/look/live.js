// Keeps the part of a page whose id is "live" up to date: the server says that something has changed, the page asks for it.
"use strict";

const live = document.getElementById("live");
let drawnAt = Date.now();
let cutOff = null;
let told = true;

function show(id, visible) {
  const element = document.getElementById(id);
  if (element) element.hidden = !visible;
}

function say(words) {
  const state = document.querySelector("#live-state [data-words]");
  if (state) state.textContent = words;
}

function connected() {
  cutOff = null;
  document.body.classList.remove("stale");
  show("disconnected", false);
  say(told ? "Live" : "Not live");
}

// The server tells as many pages as it can; this one is as it was loaded until there is room.
function notTold(not) {
  told = !not;
  document.body.classList.toggle("untold", not);
  show("not-told", not);
  if (cutOff === null) say(told ? "Live" : "Not live");
}

// In the zone of the page's other times: so many seconds east of Greenwich as it says, or else the browser's.
function clock(at) {
  const east = document.body.dataset.east;
  return east ? new Date(at + 1000 * Number(east)).toISOString().slice(11, 19) : new Date(at).toTimeString().slice(0, 8);
}

function disconnected() {
  if (cutOff !== null) return;
  cutOff = Date.now();
  document.body.classList.add("stale");
  const alarm = document.getElementById("disconnected");
  if (alarm) alarm.querySelector("[data-since]").textContent = clock(cutOff);
  show("disconnected", true);
  say("Not connected");
  age();
}

// The server answers, but not with new numbers.
function notNew() {
  document.body.classList.add("stale");
  say("Not live");
}

function storeGone(why) {
  const reason = document.querySelector("#store-error [data-why]");
  if (reason && why) reason.textContent = why;
  show("store-error", true);
  notNew();
}

function age() {
  const element = document.querySelector("#disconnected [data-age]");
  const seconds = Math.round((Date.now() - drawnAt) / 1000);
  if (element) element.textContent = seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`;
}

let drawing = false;
let again = false;
let newer = 0; // the timer that asks for what was not drawn yet
let wanted = 0; // the number of the latest event that the page has been told of

// Put the newest numbers in place; what has the focus, what is being typed and what was opened stays.
async function draw() {
  if (drawing) { again = true; return; }
  drawing = true;
  const waits = setTimeout(() => { live.setAttribute("aria-busy", "true"); say("Loading"); }, 500);
  try {
    const answer = await fetch(location.href, { headers: { "X-Part": "live" }, cache: "no-store" });
    if (answer.status === 401 || answer.headers.get("X-Reload")) { location.reload(); return; }
    if (answer.status === 503) { storeGone(); return; }
    if (!answer.ok) { notNew(); return; }
    const text = await answer.text();
    const focus = document.activeElement;
    const inside = focus && live.contains(focus);
    const href = inside ? focus.getAttribute("href") : null;
    const typed = inside && focus.id ? { id: focus.id, value: focus.value, at: focus.selectionStart } : null;
    const open = [...live.querySelectorAll("details[open][id]")].map((each) => each.id);
    live.innerHTML = text;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (typed) {
      const field = document.getElementById(typed.id);
      if (field) { field.value = typed.value; field.focus(); field.setSelectionRange(typed.at, typed.at); }
    } else if (href) {
      const link = [...live.querySelectorAll("a")].find((each) => each.getAttribute("href") === href);
      if (link) link.focus();
    }
    drawnAt = Date.now();
    show("store-error", false);
    connected();
    // what was drawn for somebody else a moment ago may not know of it yet; the server says when it is drawn again
    clearTimeout(newer);
    const seconds = Math.max(1, Number(answer.headers.get("X-Again") ?? 1));
    if (Number(answer.headers.get("X-Event")) < wanted) newer = setTimeout(draw, 1000 * seconds);
  } catch {
    disconnected();
  } finally {
    clearTimeout(waits);
    if (live.getAttribute("aria-busy")) { live.removeAttribute("aria-busy"); if (!document.body.classList.contains("stale")) say(told ? "Live" : "Not live"); }
    drawing = false;
    if (again) { again = false; setTimeout(draw, 200); }
  }
}

if (live && document.body.dataset.live) {
  let source = null;
  let later = 0;
  const listen = () => {
    if (source) source.close();
    clearTimeout(later);
    source = new EventSource(document.body.dataset.live);
    source.addEventListener("changed", (event) => { notTold(false); wanted = Number(event.data); draw(); });
    source.addEventListener("full", () => { source.close(); notTold(true); later = setTimeout(listen, 60000); });
    source.addEventListener("quiet", () => draw());
    source.addEventListener("store", (event) => storeGone(event.data));
    source.addEventListener("over", () => location.reload());
    source.onopen = () => { if (cutOff !== null) draw(); };
    source.onerror = () => {
      disconnected();
      if (source.readyState === EventSource.CLOSED) later = setTimeout(listen, 3000);
    };
  };
  listen();
  setInterval(() => { if (cutOff !== null) age(); }, 1000);
  window.addEventListener("pagehide", () => source && source.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) { listen(); draw(); } });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-try]")) { listen(); draw(); }
  });
}
