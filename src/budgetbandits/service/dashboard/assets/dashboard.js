// Signs in by a link, filters the list, checks forms while they are filled in. Every page works without it.
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
    if (known) mark();
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
