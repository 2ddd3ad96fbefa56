// One image at a time: show it, send the answer, show what the server says comes next.
(() => {
  const { at, make, percent, images, small, tell } = review;
  let chosen = 0; // of the candidates, by the arrows
  let together = true; // images that look the same get the same answer

  function candidate(entry, index) {
    const button = make("button", null, { type: "button" });
    const examples = make("span", null, { className: "examples" });
    examples.append(...entry.examples.map((row) => small(row)));
    button.append(
      make("kbd", index + 1), make("span", entry.label, { className: "name" }), examples,
      make("span", percent(entry.share), { className: "share" }));
    button.addEventListener("click", () => say(entry.label));
    const item = make("li");
    item.append(button);
    return item;
  }
  function mark() {
    [...at("candidates").children].forEach((entry, index) =>
      entry.firstChild.classList.toggle("chosen", index === chosen));
  }
  function same(item) {
    at("same").hidden = !item.same.length;
    if (!item.same.length) return;
    const others = item.same.length === 1 ? "1 more image looks" : `${item.same.length} more images look`;
    at("same-words").textContent = `${others} the same and will ` +
      (together ? "get this answer too (n: ask apart)" : "be asked apart (n: answer together)");
    at("same-images").replaceChildren(...item.same.map((row) => small(row)));
  }
  review.shown.one = (state) => {
    const { item } = state;
    const audit = state.mode === "audit";
    if (!item) return closing(state);
    if (at("work").dataset.row !== String(item.row)) {
      tell("gone", "");
      at("image").hidden = Boolean(state.no_images);
      if (!state.no_images) at("image").src = review.address(item.row);
      else tell("gone", "The features of this image are known, but not the image.");
    }
    at("work").dataset.row = item.row;
    at("image").alt = item.file_name;
    at("file").textContent = item.file_name;
    at("question").replaceChildren(audit ? "Is this right: " : "Is this ", make("b", item.label), "?");
    const why = audit ? [] : [...item.reasons];
    if (!audit && item.zero_shot_label !== item.label) why.push(`by its words alone: ${item.zero_shot_label}`);
    if (item.said) why.unshift(`you said: ${item.said}`);
    if (!audit && item.set.length) {
      why.push(`one of these, ${Math.round(100 * item.coverage)} % of the time: ${item.set.slice(0, 6).join(", ")}` +
        (item.set.length > 6 ? ` and ${item.set.length - 6} more` : ""));
    }
    at("why").textContent = why.join(" · ");
    at("candidates").replaceChildren(...item.candidates.map(candidate));
    chosen = 0;
    mark();
    same(item);
    box.clear();
    at("skip").lastChild.textContent = audit ? " later" : " skip";
    if (!state.no_images) for (const row of state.ahead) new Image().src = review.address(row); // fetched early
  };

  function closing(state) {
    const audit = state.mode === "audit";
    at("done-title").textContent = audit ? "The audit is complete" : "Nothing more to check";
    const { rest } = state.expected;
    at("done-words").textContent = audit
      ? `All ${images(state.total)} of it are answered and saved. Now the certificate:`
      : `Expected wrong among the rest: about ${rest}. That is an estimate; to be sure, look at a random sample:`;
    at("done-command").textContent = state.next;
    at("everything").hidden = audit || state.mode === "everything";
  }

  const item = () => review.view === "one" && review.state && review.state.item;
  const say = (label) => item() && review.ask("answer", { row: item().row, label, same: together });
  const moved = (step) => {
    if (!item() || !item().candidates.length) return;
    chosen = Math.max(0, Math.min(item().candidates.length - 1, chosen + step));
    mark();
  };
  const agree = () => {
    if (!item()) return;
    const entry = item().candidates[chosen];
    say(chosen === 0 || !entry ? item().label : entry.label);
  };
  let offered = "";
  const box = review.classBox({
    form: "other", input: "class", list: "matches", problem: "class-problem", accept: say,
    acceptNew: (name) => { // Enter twice, so that a slip of the hand makes no class
      if (review.state.mode === "audit") return `No class fits “${name}”. u is for none of them.`;
      if (offered !== name) {
        offered = name;
        return `No class fits “${name}”. Enter once more: unknown, and a new class to add.`;
      }
      offered = "";
      review.ask("label", { rows: [item().row], label: "unknown", new_class: name });
      return true;
    },
  });
  review.one = {
    say, agree, moved, item,
    type: () => item() && box.focus(),
    digit: (number) => item() && item().candidates[number - 1] && say(item().candidates[number - 1].label),
    together: () => { together = !together; if (item()) same(item()); },
    undo: () => review.state && review.state.can_undo && review.ask("undo", {}),
    everything: () => review.state && !review.state.item && review.state.mode !== "everything" &&
      review.state.mode !== "audit" && review.ask("everything", {}),
  };
  at("unknown").addEventListener("click", () => say("unknown"));
  at("skip").addEventListener("click", () => say(null));
  at("undo").addEventListener("click", review.one.undo);
  at("undo-done").addEventListener("click", review.one.undo);
  at("everything").addEventListener("click", review.one.everything);
  at("same-words").addEventListener("click", review.one.together);
  at("image").addEventListener("error", () => {
    at("image").hidden = true;
    tell("gone", "This image cannot be shown.");
  });
})();
