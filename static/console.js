/* Small comforts: everything here has a way without it. */
"use strict";

const typing = (element) =>
  element instanceof Element && element.matches("input, textarea, select, [contenteditable]");

const announce = (text) => {
  const place = document.getElementById("announce");
  if (place) place.textContent = text;
};

const reveal = (root) => {
  for (const element of root.querySelectorAll(".js-only[hidden]")) element.hidden = false;
};

/* A link into the timeline opens what it points at. */
const openTarget = () => {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  const details = target && target.querySelector("details");
  if (details) details.open = true;
};

const focusAlert = (root) => {
  const alert = root.querySelector('[role="alert"][tabindex="-1"]');
  if (alert) alert.focus();
};

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target)) return;
  const find = document.getElementById("find");
  if (!find) return;
  event.preventDefault();
  find.focus();
  find.select();
});

document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-copy-from]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copyFrom);
  if (!source) return;
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
    announce("Copied.");
  } catch {
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    announce("Selected. Copy it with the keyboard.");
  }
});

/* A closed menu gives the focus back to what opened it. */
document.addEventListener("keyup", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector(".menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

/* Nobody looks at a hidden tab: it asks for nothing. */
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.id === "health") event.preventDefault();
});

document.addEventListener("htmx:afterSwap", (event) => {
  reveal(document);
  const said = document.querySelector("#op > [role=status]");
  if (said && event.target.id !== "health") announce(said.textContent);
});

window.addEventListener("hashchange", openTarget);
reveal(document);
openTarget();
focusAlert(document);
