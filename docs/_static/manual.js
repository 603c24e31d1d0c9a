// A picture that is drawn smaller than it is leads to its full size.
function linkPictures() {
  for (const picture of document.querySelectorAll(".bd-article img")) {
    if (picture.closest(".sd-card")) continue;
    if (picture.naturalWidth > 1000 || picture.src.endsWith(".svg")) picture.classList.add("panels");
    if (picture.closest("a")) continue;
    const link = document.createElement("a");
    link.href = picture.src;
    link.className = "full-size";
    picture.replaceWith(link);
    link.append(picture);
  }
}

// Long names in headings and tables may break after a dot, a slash, an underscore and the like.
function breakNames() {
  for (const part of document.querySelectorAll(".bd-article :is(h1, h2, h3), .bd-article td code .pre, nav.bd-links a, .page-toc .pre")) {
    const texts = [...part.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
    for (const text of texts) {
      const pieces = text.data.split(/(?<=[\w)\]][._/=,:-])(?=[a-z_])/i);
      text.replaceWith(...pieces.flatMap((piece, i) => (i ? [document.createElement("wbr"), piece] : [piece])));
    }
  }
}

// A line neither begins with the punctuation behind a formula nor ends with a bracket in front of it.
function keepPunctuation() {
  for (const formula of document.querySelectorAll(".bd-article span.math:has(mjx-container:not([display]))")) {
    const whole = document.createElement("span");
    const [before, after] = [formula.previousSibling, formula.nextSibling];
    const opens = before?.nodeType === Node.TEXT_NODE ? before.data.match(/[(\[]+$/)?.[0] : "";
    const closes = after?.nodeType === Node.TEXT_NODE ? after.data.match(/^[.,;:!?)\]]+/)?.[0] : "";
    if (!opens && !closes) continue;
    whole.className = "whole";
    formula.replaceWith(whole);
    whole.append(opens ?? "", formula, closes ?? "");
    if (opens) before.data = before.data.slice(0, -opens.length);
    if (closes) after.data = after.data.slice(closes.length);
  }
}

// A formula that is wider than its line scrolls.
function markWideFormulas() {
  for (const formula of document.querySelectorAll(".bd-article mjx-container:not([display])")) {
    formula.classList.remove("wide");
    const block = formula.closest("p, li, td, dd, figcaption, .bd-article");
    formula.classList.toggle("wide", formula.getBoundingClientRect().width > block.clientWidth);
  }
}

document.addEventListener("DOMContentLoaded", () => {
  linkPictures();
  breakNames();
});
window.addEventListener("load", async () => {
  linkPictures();
  await window.MathJax?.startup?.promise;
  keepPunctuation();
  markWideFormulas();
  window.addEventListener("resize", markWideFormulas);
});
