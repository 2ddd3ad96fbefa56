// Many images at once: mark what is wrong, and say that all others are right.
(() => {
  const { at, make, images, small } = review;
  let grid = null;
  let marked = new Set();
  let asked = new Set(); // marked as wrong and asked one by one; then the grid goes on
  let cursor = 0;

  const KINDS = { unknown: "none of the classes?", pair: "look-alikes", class: "classes" };
  const rows = () => grid.cells.map((cell) => cell.row);
  const chosen = () => rows().filter((row) => marked.has(row));

  function draw() {
    const names = grid.kind !== "class";
    at("grid-title").replaceChildren(...{
      class: ["Are all of these ", make("b", grid.title), "?"],
      pair: ["Is every label right? ", make("b", grid.title)],
      unknown: ["Are these something that is not in the list?"],
      search: ["Found: ", make("b", grid.title)],
    }[grid.kind]);
    const left = images(grid.left);
    at("grid-words").textContent = {
      search: "The nearest first. Mark some and say what they are, or say that all labels but the marked are right.",
      unknown: `${left} alike, and unlike the classes. To add a class: mark them (a: all), press / and type its name.`,
    }[grid.kind] || `${left} left here, expected wrong: about ${grid.wrong}. Mark what is wrong.`;
    at("cells").replaceChildren(...grid.cells.map((cell, index) => {
      const entry = make("li", null, { tabIndex: -1 });
      entry.setAttribute("role", "option");
      entry.dataset.row = cell.row;
      entry.append(small(cell.row, cell.file_name));
      if (names) entry.append(make("span", cell.label, { className: "name" }));
      if (cell.answered) entry.append(make("span", "answered", { className: "quiet" }));
      entry.title = cell.file_name;
      entry.addEventListener("click", () => { cursor = index; toggle(); });
      return entry;
    }));
    cursor = Math.max(0, Math.min(cursor, grid.cells.length - 1));
    paint();
    focus();
  }
  function paint() {
    [...at("cells").children].forEach((entry, index) => {
      entry.setAttribute("aria-selected", String(marked.has(Number(entry.dataset.row))));
      entry.tabIndex = index === cursor ? 0 : -1;
    });
    const count = chosen().length;
    const key = grid.kind === "search" ? [] : [make("kbd", "Enter"), " "]; // found, not claimed: by click only
    const what = count ? `all right but the ${count} marked` : `all ${grid.cells.length} labels right`;
    at("grid-right").replaceChildren(...key, what);
    at("grid-right").disabled = !grid.cells.length;
    at("marked-box").hidden = !grid.cells.length;
  }
  const focus = () => review.view === "grid" && at("cells").children[cursor] && at("cells").children[cursor].focus();
  function toggle() {
    const cell = grid && grid.cells[cursor];
    if (!cell) return;
    if (!marked.delete(cell.row)) marked.add(cell.row);
    paint();
    focus();
  }
  function all() {
    marked = chosen().length === grid.cells.length ? new Set() : new Set(rows());
    paint();
  }
  function move(step) {
    if (!grid || !grid.cells.length) return;
    const columns = getComputedStyle(at("cells")).gridTemplateColumns.split(" ").length;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[step];
    if (cursor + by >= 0 && cursor + by < grid.cells.length) cursor += by;
    paint();
    focus();
  }

  async function list() { // the groups; returns them
    const data = await review.request("groups", undefined, "grid-problem");
    if (!data) return [];
    at("group").replaceChildren(make("option", "a group", { value: "", disabled: true }));
    for (const [kind, words] of Object.entries(KINDS)) {
      const part = make("optgroup", null, { label: words });
      part.append(...data.groups.filter((group) => group.kind === kind).map((group) =>
        make("option", `${group.title} · ${images(group.left)}, about ${Math.round(group.wrong)} wrong`, { value: group.id })));
      if (part.children.length) at("group").append(part);
    }
    return data.groups;
  }
  function showFound(found) {
    if (!found) return false;
    grid = found;
    marked = new Set();
    cursor = 0;
    review.open("grid");
    draw();
    at("group").value = found.kind === "search" ? "" : found.id;
    return true;
  }
  async function open(id) {
    const groups = await list();
    const first = groups.find((group) => group.kind === "class") || groups[0];
    const wanted = groups.some((group) => group.id === id) ? id : first && first.id;
    review.open("grid");
    if (wanted) return showFound(await review.request("grid", { text: wanted }, "grid-problem"));
    grid = { kind: "search", title: "nothing", cells: [], left: 0, wrong: 0 };
    draw();
    at("grid-title").textContent = "Every image has an answer";
    at("grid-words").textContent = "";
    return true;
  }
  async function right() {
    if (!grid || !grid.cells.length || review.busy) return;
    const wrong = chosen();
    const good = rows().filter((row) => !marked.has(row));
    const done = await review.ask("grid-answer", { right: good, wrong }, "grid-problem");
    if (!done) return;
    asked = new Set(wrong);
    if (wrong.length) review.open("one");
    else await open(grid.id);
  }
  const label = async (name, fresh = "") => {
    const some = chosen().length ? chosen() : grid.cells[cursor] ? [grid.cells[cursor].row] : [];
    if (!some.length) return;
    if (!await review.ask("label", { rows: some, label: name, new_class: fresh }, "grid-problem")) return;
    if (grid.kind !== "search") { await open(grid.id); return; }
    for (const cell of grid.cells) {
      if (some.includes(cell.row)) Object.assign(cell, { label: name, answered: true });
    }
    marked = new Set();
    draw();
  };
  let offered = "";
  const box = review.classBox({
    form: "marked-box", input: "marked-class", list: "marked-matches", problem: "marked-problem",
    accept: (name) => label(name),
    acceptNew: (name) => { // Enter twice, so that a slip of the hand makes no class
      if (offered !== name) {
        offered = name;
        return `No class fits “${name}”. Enter once more: unknown, and a new class to add.`;
      }
      offered = "";
      at("marked-class").blur();
      label("unknown", name);
      return true;
    },
  });
  review.shown.grid = (state) => { // the marked ones are answered: go on where we were
    const row = state.item && state.item.row;
    if (asked.size && review.view === "one" && !asked.has(row)) {
      asked = new Set();
      setTimeout(() => open(grid.id), 0);
    }
  };
  review.grid = {
    open, move, toggle, all,
    right: () => grid && grid.kind !== "search" && right(),
    type: () => box.focus(),
    find: () => { review.open("grid"); if (!grid) list(); at("words").focus(); at("words").select(); },
    like: async (row) => showFound(await review.request("like", { row }, review.view === "grid" ? "grid-problem" : "problem")),
    row: () => grid && grid.cells[cursor] && grid.cells[cursor].row,
    undo: async () => {
      if (!review.state.can_undo) return;
      asked = new Set();
      if (await review.ask("undo", {}, "grid-problem")) await open(grid && grid.id);
    },
  };
  at("group").addEventListener("change", async () =>
    showFound(await review.request("grid", { text: at("group").value }, "grid-problem")));
  at("find").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = at("words").value.trim();
    if (!text) return;
    if (showFound(await review.request("search", { text }, "grid-problem"))) at("words").blur();
    else at("words").select();
    focus();
  });
  at("words").addEventListener("keydown", (event) => { if (event.key === "Escape") { at("words").blur(); focus(); } });
  at("grid-right").addEventListener("click", right);
  at("grid-undo").addEventListener("click", review.grid.undo);
  at("like").addEventListener("click", () => review.one.item() && review.grid.like(review.one.item().row));
})();
