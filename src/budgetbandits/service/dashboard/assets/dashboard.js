// Keeps a page up to date and checks forms while they are filled in. Every page works without it.
"use strict";

// Times are written by the server in this zone; the page is loaded again the first time that it is known.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const kept = document.cookie.split("; ").find((each) => each.startsWith("zone="));
if (kept !== `zone=${zone}`) {
  document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=strict`;
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

const live = document.getElementById("live");
let drawnAt = Date.now();
let cutOff = null;

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
  say("Live");
}

function disconnected() {
  if (cutOff !== null) return;
  cutOff = Date.now();
  document.body.classList.add("stale");
  const alarm = document.getElementById("disconnected");
  if (alarm) alarm.querySelector("[data-since]").textContent = new Date(drawnAt).toLocaleTimeString();
  show("disconnected", true);
  say("Not connected");
  age();
}

function age() {
  const element = document.querySelector("#disconnected [data-age]");
  const seconds = Math.round((Date.now() - drawnAt) / 1000);
  if (element) element.textContent = seconds < 120 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`;
}

let drawing = false;
let again = false;
let wanted = 0; // the number of the latest event that the page has been told of

// Put the newest numbers in place; what has the focus, and what is being typed, stays.
async function draw() {
  if (drawing) { again = true; return; }
  drawing = true;
  try {
    const answer = await fetch(location.href, { headers: { "X-Part": "live" }, cache: "no-store" });
    if (answer.status === 401) { location.reload(); return; }
    if (answer.status === 503) { show("store-error", true); return; }
    if (!answer.ok) return;
    const text = await answer.text();
    const focus = document.activeElement;
    const inside = focus && live.contains(focus);
    const href = inside ? focus.getAttribute("href") : null;
    const typed = inside && focus.id ? { id: focus.id, value: focus.value, at: focus.selectionStart } : null;
    live.innerHTML = text;
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
    // what was drawn for somebody else a moment ago may not know of it yet
    if (Number(answer.headers.get("X-Event")) < wanted) setTimeout(draw, 1000);
  } catch {
    disconnected();
  } finally {
    drawing = false;
    if (again) { again = false; setTimeout(draw, 200); }
  }
}

if (live && document.body.dataset.live) {
  let source = null;
  const listen = () => {
    if (source) source.close();
    source = new EventSource(document.body.dataset.live);
    source.addEventListener("changed", (event) => { wanted = Number(event.data); draw(); });
    source.addEventListener("quiet", () => draw());
    source.addEventListener("store", () => show("store-error", true));
    source.onopen = () => { if (cutOff !== null) draw(); };
    source.onerror = () => {
      disconnected();
      if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
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

// The filter of the list asks while somebody types.
let waiting = 0;
document.addEventListener("input", (event) => {
  const filter = event.target.closest("[data-filter]");
  const checked = event.target.closest("[data-check]");
  clearTimeout(waiting);
  if (filter) {
    waiting = setTimeout(() => {
      history.replaceState(null, "", `/?${new URLSearchParams(new FormData(filter))}`);
      draw();
    }, 150);
  } else if (checked) {
    waiting = setTimeout(() => check(checked), 200);
  }
});
document.addEventListener("submit", (event) => {
  if (event.target.closest("[data-filter]")) event.preventDefault();
});

// What a form would do, said by the server while it is filled in.
async function check(form) {
  const fields = new FormData(form);
  fields.delete("code");
  const address = `${form.dataset.check}?${new URLSearchParams(fields)}`;
  try {
    const answer = await fetch(address, { headers: { "X-Part": "check" }, cache: "no-store" });
    if (answer.ok) document.getElementById("checked").innerHTML = await answer.text();
  } catch { /* the form is checked again when it is sent */ }
}
for (const form of document.querySelectorAll("[data-check]")) check(form);

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    const field = document.getElementById("q");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});
