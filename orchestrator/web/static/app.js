// What is live, and a button that copies a command. Without it all pages work; what is live then comes with a reload.
"use strict";

function dress(root) {
  if (!navigator.clipboard) return;
  for (const command of root.querySelectorAll(".command:not(.dressed)")) {
    command.classList.add("dressed");
    const code = command.querySelector("code");
    code.replaceChildren(...code.textContent.split(/(\s+)/).map(whole));
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy: " + code.textContent);
    command.append(button);
  }
}

// A short word, such as an option or the name of a point, is not broken behind its hyphens.
function whole(word) {
  if (word.length > 20 || !word.includes("-")) return word;
  const span = document.createElement("span");
  span.className = "nowrap";
  span.textContent = word;
  return span;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    say(button, "Copied");
  } catch {
    say(button, "Select it");
  }
});

// A button that asks for an act answers at once, and asks once.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.dataset.busy) return;
  if (button.getAttribute("aria-disabled") === "true") {
    event.preventDefault();
    return;
  }
  button.setAttribute("aria-disabled", "true");
  button.textContent = button.dataset.busy;
});

// How many are ticked, beside the button that takes them.
const ticked = document.getElementById("ticked");

function count() {
  ticked.textContent = ticked.closest("form").querySelectorAll('input[name="take"]:checked').length + " ticked";
}

if (ticked) {
  ticked.closest("form").addEventListener("change", count);
  count();
}

function say(button, word) {
  button.textContent = word;
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

// Put in what changed; what is open stays open, and the focus stays where it is.
function show(host, told) {
  const opened = [...host.querySelectorAll("details[id][open]")].map((each) => each.id);
  const focus = host.contains(document.activeElement) ? document.activeElement : null;
  const href = focus?.getAttribute("href");
  const path = focus && (focus.id ? "#" + CSS.escape(focus.id) : href ? `[href="${CSS.escape(href)}"]` : null);
  const within = focus?.closest("[id]")?.id;
  if (told.changed) {
    for (const html of told.changed) {
      const [piece] = parse(html).children;
      document.getElementById(piece.id).replaceWith(piece);
    }
  } else {
    const coming = parse(told.parts.map((part) => part.keep ? `<template data-keep="${part.keep}"></template>` : part).join(""));
    for (const place of coming.querySelectorAll("template")) place.replaceWith(document.getElementById(place.dataset.keep));
    host.replaceChildren(coming);
  }
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  if (path && !host.contains(document.activeElement)) {
    ((within && document.getElementById(within)?.querySelector(path)) || host.querySelector(path))?.focus({ preventScroll: true });
  }
  dress(host);
}

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

const host = document.querySelector("[data-live]");
const sign = document.getElementById("live");

function tell(state, words) {
  if (!sign) return;
  sign.dataset.state = state;
  sign.textContent = words;
}

// Only while somebody sees it: a browser opens six connections to one address, and a seventh tab would get no page.
function listen() {
  const source = new EventSource(host.dataset.live + "?shown=" + host.dataset.shown);
  const leave = new AbortController();
  function end() {
    source.close();
    leave.abort();
  }
  source.addEventListener("open", () => tell("on", "live"));
  source.addEventListener("show", (event) => {
    show(host, JSON.parse(event.data));
    host.dataset.shown = event.lastEventId;
  });
  source.addEventListener("over", () => { end(); tell("over", "ended"); });
  source.addEventListener("error", () => {
    tell("off", source.readyState === EventSource.CLOSED ? "not live: reload this page" : "connecting …");
  });
  addEventListener("pagehide", end, { signal: leave.signal });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return;
    end();
    document.addEventListener("visibilitychange", listen, { once: true });
  }, { signal: leave.signal });
}

if (host && document.hidden) document.addEventListener("visibilitychange", listen, { once: true });
else if (host) listen();
// A page that comes back out of a browser's memory shows what was, with a button that still says "asking …".
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
dress(document);
