"use strict";
// What all parts of the page share: the state of the server, asking it, and the three views.
// Names of files and classes are set as text, never as HTML.
const review = (() => {
  const at = (id) => document.getElementById(id);
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const images = (number) => `${number.toLocaleString("en")} ${number === 1 ? "image" : "images"}`;
  const self = { at, percent, images, state: null, busy: false, view: "one", shown: {}, classes: [] };

  self.make = (tag, words, more = {}) => {
    const element = Object.assign(document.createElement(tag), more);
    if (words !== undefined && words !== null) element.textContent = words;
    return element;
  };
  self.address = (row, kind = "image") => `${kind}/${encodeURIComponent(self.state.run)}/${row}`;
  self.small = (row, alt = "") => {
    if (self.state.no_images) return self.make("span", alt, { className: "no-image quiet" });
    const image = self.make("img", null, { src: self.address(row, "small"), alt, loading: "lazy" });
    image.addEventListener("error", () => image.replaceWith(self.make("span", alt, { className: "no-image quiet" })));
    return image;
  };
  self.tell = (where, words) => {
    at(where).textContent = words || "";
    at(where).hidden = !words;
  };

  // One request at a time: a key pressed meanwhile would be meant for what is not yet seen.
  self.request = async (path, body, problem = "problem") => {
    if (self.busy) return null;
    self.busy = true;
    document.body.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(path, body === undefined ? {} : {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
      });
      const text = await answer.text();
      let data;
      try { data = JSON.parse(text); } catch { data = { problem: text }; }
      if (!answer.ok) throw new Error(data.problem || `the server answered ${answer.status}`);
      self.tell("problem", "");
      self.tell(problem, "");
      return data;
    } catch (error) {
      self.tell(problem, error instanceof TypeError
        ? "The server does not answer: is transduce review still running? Your answers are saved."
        : error.message);
      return null;
    } finally {
      self.busy = false;
      document.body.removeAttribute("aria-busy");
    }
  };
  self.ask = async (path, body, problem) => {
    const state = await self.request(path, body, problem);
    if (!state) return false;
    self.state = state;
    self.show();
    return true;
  };

  self.show = () => {
    const { state } = self;
    const audit = state.mode === "audit";
    at("run").textContent = state.run;
    at("mode").textContent = audit ? "audit" : "review";
    at("to-grid").hidden = at("like").hidden = at("solve").hidden = at("only").hidden = audit;
    const done = state.total - state.left;
    at("progress").max = Math.max(1, state.total);
    at("progress").value = done;
    at("progress-words").textContent = audit
      ? `${Math.min(done + 1, state.total)} of ${state.total}` + (state.skipped ? `, ${state.skipped} put off` : "")
      : `${state.left.toLocaleString("en")} left of ${state.total.toLocaleString("en")}` +
        (state.skipped ? `, ${state.skipped} skipped` : "");
    const { queue, rest } = state.expected;
    at("expected").textContent = audit
      ? "a random sample of the whole run: say what you see"
      : `expected wrong: about ${queue} of these, about ${rest} of the rest`;
    at("saved").textContent = state.corrections
      ? `${state.corrections.toLocaleString("en")} ${audit ? "audit answers" : "answers"} saved in ${state.file}` : "";
    at("solve").disabled = !state.corrections;
    for (const id of ["undo", "undo-done", "grid-undo"]) at(id).disabled = !state.can_undo;
    self.tell("trouble", [state.trouble, state.no_images].filter(Boolean).join(" "));
    const missing = Object.entries(state.new_classes);
    at("missing").hidden = !missing.length;
    if (missing.length) {
      at("missing-words").textContent = missing.map(([name, count]) => `${name}: ${images(count)}`).join(", ");
      at("missing-command").textContent = state.label_command;
    }
    for (const part of Object.values(self.shown)) part(state);
    self.open(self.view);
  };

  // Shows one of the views: one, grid, list. Without an image to ask, `one` is the closing words.
  self.open = (view) => {
    self.view = view;
    const item = self.state.item;
    at("work").hidden = view !== "one" || !item;
    at("done").hidden = view !== "one" || Boolean(item);
    at("grid").hidden = view !== "grid";
    at("list").hidden = view !== "list";
    for (const name of ["one", "grid", "list"]) {
      at(`to-${name}`).setAttribute("aria-pressed", String(name === view));
    }
  };
  return self;
})();
