"use strict";
// One image at a time: show it, send the answer, show what the server says comes next.
// Names of files and classes are set as text, never as HTML.
(() => {
  const at = (id) => document.getElementById(id);
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const images = (number) => `${number} ${number === 1 ? "image" : "images"}`;
  let state = null;
  let busy = false;

  const address = (row) => `image/${encodeURIComponent(state.run)}/${row}`;

  async function ask(path, body) {
    if (busy) return; // a key pressed now would be meant for an image not yet seen
    busy = true;
    document.body.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(path, body === undefined ? {} : {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
      });
      const data = await answer.json();
      if (!answer.ok) throw new Error(data.problem || `the server answered ${answer.status}`);
      state = data;
      at("problem").hidden = true;
      show();
    } catch (error) {
      at("problem").textContent = error instanceof TypeError
        ? "The server does not answer: is transduce review still running? Your answers are saved."
        : error.message;
      at("problem").hidden = false;
    } finally {
      busy = false;
      document.body.removeAttribute("aria-busy");
    }
  }

  function show() {
    const item = state.item;
    at("run").textContent = state.run;
    at("work").hidden = !item;
    at("done").hidden = Boolean(item);
    at("progress").max = Math.max(1, state.total);
    at("progress").value = state.total - state.left;
    at("progress-words").textContent =
      `${state.left} left of ${state.total}` + (state.skipped ? `, ${state.skipped} skipped` : "");
    at("saved").textContent = state.corrections
      ? `${state.corrections} saved in reviewed.csv` : "";
    at("solve").disabled = !state.corrections;
    at("undo").disabled = at("undo-done").disabled = !state.can_undo;
    at("everything").hidden = state.everything;
    if (state.solved) solved(state.solved);
    if (!item) return;
    at("gone").hidden = true;
    at("image").hidden = false;
    at("image").src = address(item.row);
    at("image").alt = item.file_name;
    at("file").textContent = item.file_name;
    at("why").textContent = item.reasons.join(" · ") +
      (item.zero_shot_label === item.label ? "" : ` (zero-shot: ${item.zero_shot_label})`);
    at("work").dataset.row = item.row;
    at("candidates").replaceChildren(...item.candidates.map((candidate, index) => {
      const button = document.createElement("button");
      button.type = "button";
      const parts = [["kbd", index + 1], ["span", candidate.label], ["span", percent(candidate.share)]];
      button.append(...parts.map(([tag, words]) => {
        const part = document.createElement(tag);
        part.textContent = words;
        return part;
      }));
      button.lastChild.className = "share";
      button.addEventListener("click", () => say(candidate.label));
      const entry = document.createElement("li");
      entry.append(button);
      return entry;
    }));
    at("class").value = "";
    for (const row of state.ahead) new Image().src = address(row); // fetched early
  }

  function solved(changes) {
    at("solved").hidden = false;
    at("changed").textContent =
      `${images(changes.changed)} changed: ${changes.by_hand} by your hand, ${changes.others} that followed. ` +
      `To review: ${changes.review_before} before, ${changes.review_after} now.`;
    const { accuracy, accuracy_of_others: others } = changes;
    const change = (figures) => `${percent(figures.before)} → ${percent(figures.after)}`;
    at("accuracy").hidden = !accuracy;
    if (accuracy) at("accuracy").textContent = `accuracy ${change(accuracy)}`;
    at("accuracy-of-others").hidden = !others;
    if (others) {
      at("accuracy-of-others").textContent =
        `of the ${images(others.images)} that nobody corrected: ${change(others)}`;
    }
    at("moves").replaceChildren(...changes.moves.map((move) => {
      const entry = document.createElement("li");
      entry.textContent = `${move.before} → ${move.after}: ${images(move.images)}`;
      return entry;
    }));
    at("folder").textContent = changes.run;
  }

  const say = (label) => state && state.item && ask("answer", { row: state.item.row, label });
  const undo = () => state && state.can_undo && ask("undo", {});
  const everything = () => state && !state.item && !state.everything && ask("everything", {});
  const solve = () => {
    if (!state || !state.corrections || busy) return;
    at("solve").disabled = true;
    ask("solve", {}).finally(() => { at("solve").disabled = !state.corrections; });
  };

  at("unknown").addEventListener("click", () => say("unknown"));
  at("skip").addEventListener("click", () => say(null));
  at("undo").addEventListener("click", undo);
  at("undo-done").addEventListener("click", undo);
  at("everything").addEventListener("click", everything);
  at("solve").addEventListener("click", solve);
  at("image").addEventListener("error", () => {
    at("image").hidden = true;
    at("gone").hidden = false;
  });
  at("other").addEventListener("submit", (event) => {
    event.preventDefault();
    const label = at("class").value.trim();
    at("class").blur();
    if (label) say(label);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target === at("class")) {
      if (event.key === "Escape") at("class").blur();
      return;
    }
    const candidate = state && state.item && state.item.candidates[Number(event.key) - 1];
    const act = { u: () => say("unknown"), s: () => say(null), z: undo, Backspace: undo, r: solve,
      a: everything, "/": () => at("class").focus() }[event.key] || (candidate && (() => say(candidate.label)));
    if (act) {
      event.preventDefault();
      act();
    }
  });
  ask("state");
})();
