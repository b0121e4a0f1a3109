// What is live, and a button that copies a command. Without it all pages work; what is live then comes with a reload.
"use strict";

const shown = new Map();

function dress(root) {
  if (!navigator.clipboard) return;
  for (const command of root.querySelectorAll(".command:not(.dressed)")) {
    command.classList.add("dressed");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy: " + command.querySelector("code").textContent);
    command.append(button);
  }
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

function say(button, word) {
  button.textContent = word;
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

// Replace the sections that changed; what is open stays open, and the focus stays where it is.
function replace(host, html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const coming = [...template.content.children];
  const same = coming.map((each) => each.id).join() === [...host.children].map((each) => each.id).join();
  if (!same) {
    host.replaceChildren(...coming.map((each) => remember(each)));
  } else {
    coming.forEach((each, at) => {
      if (shown.get(each.id) !== each.outerHTML) keep(host.children[at], remember(each));
    });
  }
  dress(host);
}

function remember(section) {
  shown.set(section.id, section.outerHTML);
  return section;
}

function keep(before, after) {
  for (const details of before.querySelectorAll("details[id]")) {
    const same = after.querySelector("#" + CSS.escape(details.id));
    if (same) same.open = details.open;
  }
  const focus = before.contains(document.activeElement) ? document.activeElement : null;
  const path = focus && (focus.id ? "#" + CSS.escape(focus.id) : focus.hasAttribute("href") ? `[href="${CSS.escape(focus.getAttribute("href"))}"]` : null);
  before.replaceWith(after);
  if (path) after.querySelector(path)?.focus({ preventScroll: true });
}

const host = document.querySelector("[data-live]");
const sign = document.getElementById("live");

function tell(state, words) {
  if (!sign) return;
  sign.dataset.state = state;
  sign.textContent = words;
}

if (host) {
  for (const section of host.children) remember(section);
  const source = new EventSource(host.dataset.live + "?shown=" + host.dataset.shown);
  source.addEventListener("open", () => tell("on", "live"));
  source.addEventListener("show", (event) => replace(host, JSON.parse(event.data)));
  source.addEventListener("over", () => { source.close(); tell("over", "ended"); });
  source.addEventListener("error", () => {
    tell("off", source.readyState === EventSource.CLOSED ? "not live: reload this page" : "connecting …");
  });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}
dress(document);
