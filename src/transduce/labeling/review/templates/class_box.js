// A box where a class is typed: the beginning of its name is enough when no other begins so.
review.classBox = ({ form, input, list, problem, accept, acceptNew }) => {
  const { at, make, tell } = review;
  const MOST = 8;
  let found = [];
  let chosen = -1; // by the arrows; -1 is none

  const starts = (label, text) => label.toLowerCase().startsWith(text);
  const within = (label, text) => label.toLowerCase().split(/[\s_/-]+/).some((word) => word.startsWith(text));
  function look(typed) {
    const text = typed.trim().toLowerCase();
    const all = [...review.classes, "unknown"];
    const first = all.filter((label) => starts(label, text));
    const others = all.filter((label) => !starts(label, text) && within(label, text));
    return { text, first, others, exact: all.find((label) => label.toLowerCase() === text) };
  }
  function draw() {
    at(list).hidden = !found.length;
    at(input).setAttribute("aria-expanded", String(found.length > 0));
    at(list).replaceChildren(...found.slice(0, MOST).map((label, index) => {
      const entry = make("li", label);
      entry.setAttribute("role", "option");
      entry.setAttribute("aria-selected", String(index === chosen));
      entry.addEventListener("mousedown", (event) => { event.preventDefault(); take(label); });
      return entry;
    }));
    if (found.length > MOST) at(list).append(make("li", `and ${found.length - MOST} more`, { className: "quiet" }));
  }
  function close() {
    found = [];
    chosen = -1;
    draw();
  }
  function take(label) {
    clear();
    at(input).blur();
    accept(label);
  }
  function clear() {
    at(input).value = "";
    tell(problem, "");
    close();
  }
  function refuse(words) {
    tell(problem, words);
    at(input).select(); // so that the next try replaces it
  }
  function submit(event) {
    event.preventDefault();
    const typed = at(input).value.trim();
    if (!typed) return;
    const { text, first, others, exact } = look(typed);
    if (chosen >= 0 && chosen < found.length) take(found[chosen]);
    else if (exact) take(exact);
    else if (first.length === 1) take(first[0]);
    else if (!first.length && others.length === 1) take(others[0]);
    else if (first.length + others.length) {
      const some = [...first, ...others].slice(0, 3).join(", ");
      const more = first.length + others.length > 3 ? " and more" : "";
      refuse(`${first.length + others.length} classes fit “${typed}”: ${some}${more}. Type on, or choose with ↓.`);
    } else if (acceptNew && text) {
      const answer = acceptNew(typed);
      if (answer === true) clear();
      else refuse(answer);
    } else refuse(`No class fits “${typed}”.`);
  }

  at(input).addEventListener("input", () => {
    tell(problem, "");
    chosen = -1;
    const { text, first, others } = look(at(input).value);
    found = text ? [...first, ...others] : [];
    draw();
  });
  at(input).addEventListener("blur", close);
  at(input).addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      clear();
      at(input).blur();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && found.length) {
      event.preventDefault();
      const last = Math.min(found.length, MOST) - 1;
      chosen = event.key === "ArrowDown" ? Math.min(chosen + 1, last) : Math.max(chosen - 1, -1);
      draw();
    }
  });
  at(form).addEventListener("submit", submit);
  return { clear, focus: () => at(input).focus() };
};
