"use strict";
// The queue of images to review: filter by reason, class and name; sort; move with the arrow keys.
(() => {
  const list = document.getElementById("cards");
  if (!list) return;
  const cards = [...list.children];
  const chips = [...document.querySelectorAll("[data-reason]")];
  const classes = document.getElementById("class");
  const order = document.getElementById("order");
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  let reason = "";
  document.getElementById("controls").hidden = false;

  const visible = () => [...list.children].filter((card) => !card.hidden);

  function filter() {
    const words = search.value.trim().toLowerCase();
    for (const card of cards) {
      card.hidden =
        (reason && !card.dataset.reasons.split("|").includes(reason)) ||
        (classes.value && card.dataset.label !== classes.value) ||
        (words && !card.dataset.file.toLowerCase().includes(words));
    }
    const left = visible();
    shown.textContent = left.length === cards.length
      ? "" : `${left.length} of ${cards.length} shown`;
    cards.forEach((card) => { card.tabIndex = -1; });
    if (left.length) left[0].tabIndex = 0;
  }

  function sort() {
    const choice = order.selectedOptions[0].dataset;
    const key = order.value;
    const compare = choice.text
      ? (a, b) => a.dataset[key].localeCompare(b.dataset[key])
      : (a, b) => (a.dataset[key] - b.dataset[key]) * (choice.down ? -1 : 1);
    list.append(...cards.sort(compare));
    filter();
  }

  function move(card, step) {
    const left = visible();
    const next = left[left.indexOf(card) + step];
    if (!next) return;
    card.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  for (const chip of chips) {
    chip.addEventListener("click", () => {
      reason = chip.dataset.reason;
      chips.forEach((other) => other.setAttribute("aria-pressed", other === chip));
      filter();
    });
  }
  classes.addEventListener("change", filter);
  search.addEventListener("input", filter);
  order.addEventListener("change", sort);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = ["INPUT", "SELECT"].includes(event.target.tagName);
    if (event.key === "/" && !typing) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "Escape" && event.target === search) {
      search.value = "";
      search.blur();
      filter();
    }
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const card = event.target.closest && event.target.closest("#cards > li");
    if (step && card) {
      event.preventDefault();
      move(card, step);
    }
    if (event.key === "Enter" && card === event.target) {
      const link = card.querySelector("a");
      if (link) link.click();
    }
  });
  filter();
})();
