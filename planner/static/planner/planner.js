// Keys, the theme switch, copying, and what htmx may not overwrite. Every page works without this file.
"use strict";

const narrow = matchMedia("(max-width: 900px)");
const isTyping = (element) => element.matches("input, select, textarea, [contenteditable]");
const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
}

async function copyText(button) {
  const said = button.textContent;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = said; }, 1500);
}

function filterList(box) {
  const wanted = box.value.trim().toLowerCase();
  for (const item of document.querySelectorAll(box.dataset.filter)) {
    item.hidden = !item.textContent.toLowerCase().includes(wanted);
  }
}

function foldForNarrow() {
  for (const fold of document.querySelectorAll("details[data-fold-narrow]")) fold.open = !narrow.matches;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-theme-switch], [data-copy], [data-opens]");
  if (!button) return;
  if ("themeSwitch" in button.dataset) switchTheme();
  if ("copy" in button.dataset) copyText(button);
  if ("opens" in button.dataset) document.getElementById(button.dataset.opens).showModal();
});

document.addEventListener("paste", (event) => {
  if ("submitOnPaste" in event.target.dataset) setTimeout(() => event.target.form.requestSubmit());
});

document.addEventListener("input", (event) => {
  if (event.target.dataset?.filter) filterList(event.target);
});

// A key belongs to the element that names it: data-key="c" is clicked, or focused if one types into it.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const owner = document.querySelector(`main [data-key="${CSS.escape(event.key)}"]`)
    || document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!owner) return;
  event.preventDefault();
  if (isTyping(owner)) { owner.focus(); owner.select?.(); } else owner.click();
});

// Where a fragment was redirected (a session that ended leads to sign-in), the whole page follows.
document.addEventListener("htmx:before:swap", (event) => {
  const raw = event.detail.ctx?.response?.raw;
  if (!raw?.redirected) return;
  event.preventDefault();
  location.assign(raw.url);
});

document.addEventListener("htmx:error", () => { document.getElementById("unanswered").hidden = false; });
document.addEventListener("htmx:after:request", () => { document.getElementById("unanswered").hidden = true; });

narrow.addEventListener("change", foldForNarrow);
document.addEventListener("DOMContentLoaded", foldForNarrow);

// What somebody types, unfolds or filters while an answer is under way is theirs: a redrawn form does not take it back.
const THEIRS = { value: "input, textarea", selected: "option", open: "details", hidden: "[data-flag]" };
htmx.registerExtension("keep-typed", {
  htmx_before_morph_attr: (element, detail) => !(detail.attrName in THEIRS && element.matches(THEIRS[detail.attrName])),
});
