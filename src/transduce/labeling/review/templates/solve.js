// Solving again with the answers: a sign while it works, what it changed, and the way back.
(() => {
  const { at, make, percent, images, small } = review;
  const words = at("solve").lastChild.textContent;

  function solved(changes) {
    at("solved").hidden = !changes;
    if (!changes) return;
    at("changed").textContent =
      `${images(changes.changed)} changed: ${changes.by_hand} by your hand, ${changes.others} that followed. ` +
      `To check: ${changes.review_before} before, ${changes.review_after} now.`;
    const { accuracy, accuracy_of_others: others } = changes;
    const change = (figures) => `${percent(figures.before)} → ${percent(figures.after)}`;
    at("accuracy").hidden = !accuracy;
    if (accuracy) at("accuracy").textContent = `accuracy ${change(accuracy)}`;
    at("accuracy-of-others").hidden = !others;
    if (others) {
      at("accuracy-of-others").textContent =
        `of the ${images(others.images)} that nobody corrected: ${change(others)}`;
    }
    at("moves").replaceChildren(...changes.moves.map((move) =>
      make("li", `${move.before} → ${move.after}: ${images(move.images)}`)));
    at("followed").hidden = !changes.images.length;
    at("followed-words").textContent = `the ${images(changes.others)} that followed` +
      (changes.images.length < changes.others ? `, the first ${changes.images.length}` : "");
    at("followed-images").replaceChildren(...changes.images.map((entry) => {
      const card = make("button", null, { type: "button", title: entry.file_name });
      card.append(small(entry.row), make("span", `${entry.before} → ${entry.after}`));
      card.addEventListener("click", () => { review.view = "one"; review.ask("again", { row: entry.row }); });
      return card;
    }));
    review.tell("audited", changes.audited
      ? `${changes.audited} audit answers came along and were kept out of solving. A certificate is of the labels it was made for: audit these anew.`
      : "");
    at("folder").textContent = changes.run;
  }
  async function solve() {
    const { state } = review;
    if (!state || !state.corrections || state.mode === "audit" || review.busy) return;
    const began = Date.now();
    const tick = () => {
      at("solve").lastChild.textContent = ` solving again … ${Math.round((Date.now() - began) / 1000)} s`;
    };
    at("solve").classList.add("working");
    at("solve").disabled = true;
    tick();
    const clock = setInterval(tick, 1000);
    const done = await review.ask("solve", {});
    clearInterval(clock);
    at("solve").classList.remove("working");
    at("solve").lastChild.textContent = words;
    at("solve").disabled = !review.state.corrections;
    if (!done) return;
    solved(review.state.solved);
    if (review.view === "grid") await review.grid.open();
    if (review.view === "list") await review.list.open();
  }
  async function back() {
    if (!review.state.can_undo_solve || !await review.ask("undo-solve", {})) return;
    solved(null);
    review.tell("trouble", `Back in ${review.state.run}, with all answers. ${review.state.undone} is still there: delete it if you do not want it.`);
    if (review.view !== "one") review.open("one");
  }
  at("solve").addEventListener("click", solve);
  at("undo-solve").addEventListener("click", back);
  review.solve = solve;
})();
