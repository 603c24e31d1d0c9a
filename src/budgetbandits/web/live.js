// Keeps the part of a page whose id is "live" up to date: the server says that something has changed, the page asks for it.
"use strict";

const live = document.getElementById("live");
const beat = 1000 * Number(document.body.dataset.beat || 10); // milliseconds within which the server says something
const patience = 3 * beat; // how long the page waits for that, and for any answer
let drawnAt = Date.now();
let askedAt = 0; // when the page last asked for its numbers
let slow = false; // whether it has been waiting for them for a while
let began = 0; // when the page began to listen ...
let heard = 0; // ... and when it last heard anything since then
let cutOff = null; // since when there is no connection
let old = false; // whether the server answers, but not with new numbers
let full = false; // whether the server has no room to tell this page what happens
let over = false; // whether who looks at it is signed out
let silent = false; // whether nothing comes through, though the server answers

function show(id, visible) {
  const element = document.getElementById(id);
  if (element) element.hidden = !visible;
}

// "Live" is said of a page that has heard of the server within three beats and has its numbers, and of no other. One
// that hears nothing asks: then its numbers are delayed.
function state() {
  const word = over ? "Signed out" : cutOff !== null ? `Offline since ${clock(cutOff).slice(0, 5)}`
    : slow ? "Loading" : old ? "Not live" : full || silent ? "Delayed" : heard ? "Live" : "Connecting";
  document.body.classList.toggle("stale", over || old || cutOff !== null);
  document.body.classList.toggle("is-live", word === "Live");
  show("disconnected", cutOff !== null && !over);
  show("not-live", full && cutOff === null && !over);
  show("silent", silent && cutOff === null && !over);
  show("signed-out", over);
  const words = document.querySelector("#live-state [data-words]");
  if (words && words.textContent !== word) words.textContent = word;
}

// In the time zone of the page, given in seconds east of Greenwich, or else in the browser's.
function clock(at) {
  const east = document.body.dataset.east;
  return east ? new Date(at + 1000 * Number(east)).toISOString().slice(11, 19) : new Date(at).toTimeString().slice(0, 8);
}

function fill(selector, words) {
  const element = document.querySelector(selector);
  if (element && words) element.textContent = words;
}

function disconnected() {
  if (cutOff !== null) return;
  cutOff = Date.now();
  fill("#disconnected [data-since]", clock(cutOff));
  age();
  state();
}

// The server answers, but not with new numbers.
function notNew() {
  old = true;
  state();
}

function storeGone(why) {
  fill("#store-error [data-why]", why);
  show("store-error", true);
  notNew();
}

// The numbers stay, in grey: who has come back to the page sees why it goes no further.
function signedOut(why) {
  if (!document.getElementById("signed-out")) { location.reload(); return; }
  over = true;
  fill("#signed-out [data-why]", why && `${why[0].toUpperCase()}${why.slice(1)}.`);
  stop();
  state();
}

function age() {
  const seconds = Math.round((Date.now() - drawnAt) / 1000);
  fill("#disconnected [data-age]", seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`);
}

let drawing = false;
let again = false;
let newer = 0; // the timer that asks for what was not drawn yet
let wanted = 0; // the number of the latest event that the page has heard of

// Put the newest numbers in place; what has the focus, what is being typed and what was opened stays.
async function draw() {
  if (over) return;
  if (drawing) { again = true; return; }
  drawing = true;
  askedAt = Date.now();
  const waits = setTimeout(() => { slow = true; live.setAttribute("aria-busy", "true"); state(); }, 500);
  try {
    const signal = AbortSignal.timeout(patience); // or a server that hangs would leave old numbers on a live page
    const answer = await fetch(location.href, { headers: { "X-Part": "live" }, cache: "no-store", signal });
    if (answer.headers.get("X-Reload")) { location.reload(); return; }
    if (answer.status === 401) { signedOut((await answer.json().catch(() => ({}))).detail); return; }
    if (answer.status === 503) { storeGone(); return; }
    if (!answer.ok) { notNew(); return; }
    const text = await answer.text();
    const focus = document.activeElement;
    const inside = focus && live.contains(focus);
    const href = inside ? focus.getAttribute("href") : null;
    const typed = inside && focus.id ? { id: focus.id, value: focus.value, at: focus.selectionStart ?? null } : null;
    const open = [...live.querySelectorAll("details[open][id]")].map((each) => each.id);
    live.innerHTML = text;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (typed) {
      const field = document.getElementById(typed.id);
      if (field && typed.value !== undefined) field.value = typed.value;
      field?.focus({ preventScroll: true });
      if (typed.at !== null) field?.setSelectionRange(typed.at, typed.at);
    } else if (href) {
      const link = [...live.querySelectorAll("a")].find((each) => each.getAttribute("href") === href);
      if (link) link.focus();
    }
    document.dispatchEvent(new Event("drawn"));
    drawnAt = Date.now();
    cutOff = null;
    old = false;
    show("store-error", false);
    // a view cached a moment ago may not know of it yet; the server says when it is drawn again
    clearTimeout(newer);
    const seconds = Math.max(1, Number(answer.headers.get("X-Again") ?? 1));
    if (Number(answer.headers.get("X-Event")) < wanted) newer = setTimeout(draw, 1000 * seconds);
  } catch {
    disconnected();
  } finally {
    clearTimeout(waits);
    slow = false;
    live.removeAttribute("aria-busy");
    state();
    drawing = false;
    if (again) { again = false; setTimeout(draw, 200); }
  }
}

let source = null;
let later = 0;

function stop() {
  clearTimeout(later);
  source?.close();
  source = null;
}

function hear(name, act) {
  source.addEventListener(name, (event) => {
    heard = Date.now();
    silent = full = false;
    act(event);
    state();
  });
}

function listen() {
  stop();
  if (over) return;
  began = Date.now();
  heard = 0;
  source = new EventSource(document.body.dataset.live);
  hear("changed", (event) => { wanted = Number(event.data); draw(); });
  hear("quiet", () => draw());
  hear("beat", () => {});
  hear("full", () => { stop(); full = true; later = setTimeout(listen, 60000); });
  hear("store", (event) => storeGone(event.data));
  hear("over", (event) => signedOut(event.data));
  source.onopen = () => { if (cutOff !== null) draw(); };
  source.onerror = () => {
    disconnected();
    if (source?.readyState === EventSource.CLOSED) { later = setTimeout(listen, 3000); draw(); } // which says why
  };
  state();
}

// A connection may be open and carry nothing: a proxy holds it back, or a machine has slept. Then the page asks, every
// beat; and if the server has no room to tell it anything, every three.
function watch() {
  if (cutOff !== null) age();
  if (full && Date.now() - askedAt >= patience) draw();
  if (silent && Date.now() - askedAt >= beat) draw();
  if (!source || Date.now() - (heard || began) < patience) return;
  if (!silent) fill("#silent [data-since]", clock(heard || began));
  fill("#silent [data-every]", `${Math.round(beat / 1000)} seconds`);
  silent = true;
  listen();
  draw();
}

if (live && document.body.dataset.live) {
  listen();
  setInterval(watch, Math.min(1000, beat / 4));
  document.addEventListener("visibilitychange", watch); // timers sleep in pages that nobody sees
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", (event) => { if (event.persisted) { listen(); draw(); } });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-try]")) { listen(); draw(); }
  });
}
