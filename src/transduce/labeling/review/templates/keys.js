// Which key does what in which view, and the table of them.
(() => {
  const { at, make, one, grid, list } = review;
  const like = (row) => row !== undefined && row !== null && row !== false && grid.like(row);
  const audit = () => review.state && review.state.mode === "audit";
  const free = (act) => () => !audit() && act();
  const home = () => { review.open("one"); };
  const KEYS = {
    one: [
      ["1–9", "this class", null],
      ["Enter", "the marked class: it is what the label says", one.agree],
      ["y", "the label is right", () => one.item() && one.say(one.item().label)],
      ["ArrowDown", "mark the next class", () => one.moved(1)],
      ["ArrowUp", "mark the class before", () => one.moved(-1)],
      ["/", "type a class: its beginning is enough", one.type],
      ["u", "unknown: none of the classes", () => one.say("unknown")],
      ["s", "skip; in an audit: later", () => one.say(null)],
      ["n", "images that look the same: together or apart", one.together],
      ["m", "more like this, as a grid", free(() => one.item() && like(one.item().row))],
      ["a", "all other images, when there is nothing more to check", one.everything],
      ["z", "undo, as Backspace", one.undo], ["Backspace", "", one.undo],
    ],
    grid: [
      ["ArrowLeft", "", () => grid.move("ArrowLeft")], ["ArrowRight", "move", () => grid.move("ArrowRight")],
      ["ArrowUp", "", () => grid.move("ArrowUp")], ["ArrowDown", "", () => grid.move("ArrowDown")],
      [" ", "mark, or take the mark off", grid.toggle],
      ["a", "mark all, or none", grid.all],
      ["Enter", "all right but the marked; those are asked next", grid.right],
      ["/", "type what the marked are: a class, or a new one", grid.type],
      ["m", "more like this", () => like(grid.row())],
      ["z", "undo, as Backspace", grid.undo], ["Backspace", "", grid.undo],
      ["Escape", "back to one by one", home],
    ],
    list: [
      ["ArrowDown", "the answer before", () => list.move(1)], ["ArrowUp", "the answer after", () => list.move(-1)],
      ["Enter", "ask again", null],
      ["Escape", "back to one by one", home],
    ],
    all: [
      ["g", "grid of a class, of look-alikes, of unknown images", free(() => grid.open())],
      ["f", "find images by words", free(grid.find)],
      ["l", "your answers", list.open],
      ["r", "solve again with your answers", review.solve],
      ["?", "these keys", () => at("keys").showModal()],
    ],
  };
  const NAMES = { ArrowDown: "↓", ArrowUp: "↑", ArrowRight: "← → ↑ ↓", " ": "Space", Escape: "Esc" };
  for (const [view, words] of [["one", "one by one"], ["grid", "grid"], ["list", "answers"], ["all", "everywhere"]]) {
    const list = make("dl");
    for (const [key, what] of KEYS[view]) {
      if (!what) continue;
      const term = make("dt");
      term.append(make("kbd", NAMES[key] || key));
      list.append(term, make("dd", what));
    }
    const part = make("section");
    part.append(make("h3", words), list);
    at("keys-list").append(part);
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !review.state || at("keys").open) return;
    if (event.target.matches("input, textarea, select")) return;
    const arrow = event.key.startsWith("Arrow");
    if (event.repeat && !arrow) return;
    // Enter and Space on a button press that button, but for the cells, which are no buttons.
    if (event.target.matches("button, summary") && (event.key === "Enter" || event.key === " ")) return;
    const known = [...KEYS[review.view], ...KEYS.all].find(([key, , act]) => key === event.key && act);
    const digit = review.view === "one" && /^[1-9]$/.test(event.key);
    if (!known && !digit) return;
    event.preventDefault();
    if (digit) one.digit(Number(event.key));
    else known[2]();
  });
  document.addEventListener("click", (event) => { // by mouse: the keys then mean the view again
    const button = event.detail && event.target.closest("button");
    if (button) button.blur();
  });
  at("to-one").addEventListener("click", home);
  at("to-grid").addEventListener("click", () => grid.open());
  at("to-list").addEventListener("click", list.open);
  at("to-keys").addEventListener("click", () => at("keys").showModal());
  (async () => {
    review.classes = await review.request("classes") || [];
    await review.ask("state");
  })();
})();
