"use strict";
// Answers the pointer: a line through all policies, and the numbers and reasons at that moment.
const data = JSON.parse(document.getElementById("data").textContent);
const tip = document.getElementById("tip");
const two = (n) => String(n).padStart(2, "0");

function clock(model, seconds) {
  if (model.origin !== null) {
    const at = new Date(model.origin + seconds * 1000);
    return at.toUTCString().slice(0, 11) + " " + two(at.getUTCHours()) + ":" + two(at.getUTCMinutes());
  }
  const minutes = Math.floor(seconds / 60);
  const day = Math.floor(minutes / 1440) + 1;
  return "day " + day + ", " + two(Math.floor(minutes / 60) % 24) + ":" + two(minutes % 60);
}

function line(parent, name, words) {
  const element = parent.appendChild(document.createElement(name));
  element.textContent = words;
  return element;
}

function fill(model, policy, step) {
  tip.textContent = "";
  const head = tip.appendChild(document.createElement("div"));
  line(head, "b", policy.name + " · " + clock(model, model.begins + step * model.step));
  if (model.demand[step] === null) {
    line(head, "span", "no data");
    return;
  }
  const starting = policy.starting[step] > 0 ? " + " + policy.starting[step] + " starting" : "";
  line(head, "span", "demand " + model.demand[step] + ", ready " + policy.ready[step] + starting);
  line(head, "br", "");
  line(head, "span", policy.waiting[step] + " waiting, " + policy.missed[step] + " % missed");
  for (const [at, seconds, from, to, reason] of policy.decisions) {
    if (Math.abs(at - step) > 1) continue;
    const part = tip.appendChild(document.createElement("div"));
    line(part, "span", clock(model, seconds).split(" ").pop() + "  " + from + " → " + to + "  ");
    line(part, "small", data.because[reason]);
  }
}

for (const svg of document.querySelectorAll("svg.time")) {
  const cross = svg.querySelector(".cross");
  const model = data.models[svg.dataset.model];
  const panels = [...svg.querySelectorAll(".panel")];
  const hide = () => {
    cross.setAttribute("visibility", "hidden");
    tip.style.visibility = "hidden";
  };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const along = (share - data.left) / (data.right - data.left);
    if (along < 0 || along >= 1) return hide();
    const index = panels.findIndex((panel) => {
      const place = panel.getBoundingClientRect();
      return event.clientY >= place.top && event.clientY <= place.bottom + 8;
    });
    if (index < 0) return hide();
    const step = Math.floor(along * model.demand.length);
    fill(model, model.policies[index], step);
    const x = share * svg.viewBox.baseVal.width;
    cross.setAttribute("transform", "translate(" + x + " 0)");
    cross.setAttribute("visibility", "visible");
    const right = event.clientX + 16 + tip.offsetWidth > innerWidth;
    const below = event.clientY + 16 + tip.offsetHeight > innerHeight;
    tip.style.left = (right ? event.clientX - 16 - tip.offsetWidth : event.clientX + 16) + "px";
    tip.style.top = (below ? event.clientY - 16 - tip.offsetHeight : event.clientY + 16) + "px";
    tip.style.visibility = "visible";
  });
}
