// Signs in by a link, filters the list, checks forms while they are filled in. Every page works without it.
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
