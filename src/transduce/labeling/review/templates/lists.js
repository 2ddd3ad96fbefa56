// The answers so far, to go back to; and a list of images to look at.
(() => {
  const { at, make, small } = review;

  async function open() {
    const data = await review.request("answers");
    if (!data) return;
    review.open("list");
    at("list-title").textContent = data.all ? `Your answers (${data.all.toLocaleString("en")})` : "No answers yet";
    at("answers").replaceChildren(...data.answers.map((entry) => {
      const button = make("button", null, { type: "button" });
      const words = make("span", null, { className: "name" });
      words.append(make("b", entry.label), entry.label === entry.was ? " as it was" : ` was ${entry.was}`,
        make("bdi", entry.file_name, { className: "quiet" }));
      button.append(small(entry.row), words, make("span", "change", { className: "share" }));
      button.addEventListener("click", () => again(entry.row));
      const item = make("li");
      item.append(button);
      return item;
    }));
    if (data.all > data.answers.length) {
      at("answers").append(make("li", `and ${data.all - data.answers.length} before`, { className: "quiet" }));
    }
    const first = at("answers").querySelector("button");
    if (first) first.focus();
  }
  async function again(row) {
    review.view = "one";
    await review.ask("again", { row });
  }
  function move(step) {
    const buttons = [...at("answers").querySelectorAll("button")];
    const now = buttons.indexOf(document.activeElement);
    const next = buttons[Math.max(0, Math.min(buttons.length - 1, now + step))];
    if (next) next.focus();
  }
  at("only").addEventListener("submit", async (event) => {
    event.preventDefault();
    const view = review.view;
    review.view = "one";
    if (!await review.ask("only", { text: at("names").value }, "only-problem")) review.open(view);
    else at("names").blur();
  });
  review.list = { open, move };
})();
