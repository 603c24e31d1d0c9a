// Linear axes of regret: where policies are hidden, the others get the whole height of their panel.
"use strict";

// 1, 2, 2.5, 5, 10, ... from 0 to the top, four steps or fewer.
function roundSteps(top) {
  const ten = 10 ** Math.floor(Math.log10(top));
  const step = [0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5].map((digit) => digit * ten).find((each) => top / each <= 4.5);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, place) => place * step);
}

const onAxis = (value) => {
  const [unit, letter] = [[1e9, "G"], [1e6, "M"], [1e3, "K"], [1, ""]].find(([size]) => value >= size) ?? [1, ""];
  return `${Number((value / unit).toPrecision(3))}${letter}`;
};

// As the figure was drawn.
function restore(svg) {
  for (const made of svg.querySelectorAll(".rescaled-tick")) made.remove();
  for (const tick of svg.querySelectorAll(".unscaled-tick")) tick.classList.remove("unscaled-tick");
  for (const moved of svg.querySelectorAll(".rescaled")) {
    moved.classList.remove("rescaled");
    moved.removeAttribute("transform");
    moved.removeAttribute("vector-effect");
  }
}

function move(element, transform) {
  element.classList.add("rescaled");
  element.setAttribute("transform", transform);
}

function rescalePanel(axes, off) {
  const points = [...axes.querySelectorAll(".point")].map((point) => ({
    policy: point.dataset.policy, y: Number(point.getAttribute("y")), value: Number(point.dataset.y),
    high: Number(point.dataset.high ?? point.dataset.y),
  }));
  const seen = points.filter((point) => !off.has(point.policy));
  if (!seen.length || seen.length === points.length || points.some((point) => point.value < 0)) return;
  const [least, most] = [Math.min, Math.max].map((pick) => {
    const value = pick(...points.map((point) => point.value));
    return points.find((point) => point.value === value);
  });
  if (!(most.value > least.value)) return;
  const slope = (most.y - least.y) / (most.value - least.value); // downwards, so below 0
  const zero = most.y - slope * most.value;
  const highest = Math.max(...points.map((point) => point.value));
  const shown = Math.max(...seen.map((point) => Math.min(point.high, 2 * point.value)));
  const before = Math.max(...points.map((point) => Math.min(point.high, 2 * highest)));
  const times = before / shown;
  if (!(times > 1.001 && Number.isFinite(times))) return;
  // Matplotlib places an area by a use at x = 0, a marker by one at its point.
  for (const part of axes.querySelectorAll(":is(.line, .band, .bars) :is(path, use)")) {
    if (part.closest("defs")) continue;
    if (part.localName === "use" && Number(part.getAttribute("x")) !== 0) {
      move(part, `translate(0 ${(Number(part.getAttribute("y")) - zero) * (times - 1)})`);
    } else {
      move(part, `matrix(1 0 0 ${times} 0 ${zero * (1 - times)})`);
      part.setAttribute("vector-effect", "non-scaling-stroke");
    }
  }
  const ticks = [...axes.querySelectorAll('g[id*="-ytick_"]')];
  const model = ticks.find((tick) => tick.querySelector("use, path") && tick.querySelector("text"));
  if (!model) return;
  const line = /^M\s*[-\d.]+\s+([-\d.]+)/.exec(model.querySelector("path[d]").getAttribute("d"));
  for (const tick of ticks) tick.classList.add("unscaled-tick");
  for (const value of roundSteps((1.06 * before) / times)) {
    const tick = model.cloneNode(true);
    for (const part of [tick, ...tick.querySelectorAll("[id]")]) part.removeAttribute("id");
    tick.classList.remove("unscaled-tick");
    tick.classList.add("rescaled-tick");
    tick.setAttribute("transform", `translate(0 ${zero + slope * times * value - Number(line[1])})`);
    tick.querySelector("text").textContent = onAxis(value);
    model.parentNode.append(tick);
  }
}

// Of every linear drawing, with these policies hidden.
function rescale(off) {
  for (const svg of document.querySelectorAll(".plot.linear svg.figure")) {
    restore(svg);
    for (const axes of svg.querySelectorAll('g[id*="-axes_"]')) rescalePanel(axes, off);
  }
}
