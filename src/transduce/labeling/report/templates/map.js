// The map: hover over a dot for its image, draw around dots to select them, click a class to see it.
(() => {
  const map = document.getElementById("map");
  if (!map) return;
  const data = JSON.parse(document.getElementById("map-data").textContent);
  const dots = [...map.querySelectorAll("circle")];
  const at = dots.map((dot) => [+dot.getAttribute("cx"), +dot.getAttribute("cy")]);
  const card = document.getElementById("map-card");
  const lasso = document.getElementById("lasso");
  const panel = document.getElementById("map-selection");
  const sheet = document.getElementById("map-pictures");
  const chips = [...document.querySelectorAll("[data-map-class]")];
  const draw = document.getElementById("map-draw");
  const tile = sheet ? +sheet.dataset.tile : 0;
  let selected = [];
  let line = null;

  function picture(index, side) {
    const row = data.rows[index];
    const known = document.querySelector(`[data-row="${row}"] img`);
    if (known) {
      const image = new Image();
      image.src = known.src;
      image.alt = "";
      return image;
    }
    if (!(row in data.tiles)) return null;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = tile;
    const number = data.tiles[row];
    const x = (number % data.across) * tile;
    const y = Math.floor(number / data.across) * tile;
    canvas.getContext("2d").drawImage(sheet, x, y, tile, tile, 0, 0, tile, tile);
    return canvas;
  }

  function place(event) {
    const box = map.getBoundingClientRect();
    const view = map.viewBox.baseVal;
    return [(event.clientX - box.left) / box.width * view.width,
            (event.clientY - box.top) / box.height * view.height];
  }

  function nearest([x, y], most) {
    let best = -1;
    at.forEach(([px, py], index) => {
      if (dots[index].classList.contains("dim")) return;
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < most) { most = distance; best = index; }
    });
    return best;
  }

  function show(index, event) {
    if (index < 0) { card.hidden = true; return; }
    const image = picture(index);
    const label = document.createElement("b");
    label.textContent = data.classes[data.labels[index]];
    const doubt = document.createElement("span");
    doubt.className = "quiet";
    doubt.textContent = ` wrong with ${Math.round(100 * data.doubts[index])} %`;
    const name = document.createElement("span");
    name.className = "quiet file";
    name.textContent = data.names[index];
    const words = document.createElement("div");
    words.append(label, doubt, document.createElement("br"), name);
    card.replaceChildren(...(image ? [image, words] : [words]));
    card.hidden = false;
    const box = map.parentElement.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    card.dataset.side = x > box.width / 2 ? "left" : "right";
    card.style.setProperty("--x", `${x}px`);
    card.style.setProperty("--y", `${Math.min(y, box.height - 60)}px`);
  }

  function inside([x, y], polygon) {
    let odd = false;
    for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
      const [ax, ay] = polygon[i];
      const [bx, by] = polygon[j];
      if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) odd = !odd;
    }
    return odd;
  }

  function select(indices) {
    selected = indices;
    dots.forEach((dot) => dot.classList.remove("chosen"));
    indices.forEach((index) => dots[index].classList.add("chosen"));
    panel.hidden = !indices.length;
    if (!indices.length) { lasso.setAttribute("d", ""); return; }
    const counts = new Map();
    indices.forEach((i) => counts.set(data.labels[i], (counts.get(data.labels[i]) || 0) + 1));
    const parts = [...counts].sort((a, b) => b[1] - a[1])
      .map(([label, count]) => `${count} ${data.classes[label]}`);
    const shown = parts.slice(0, 6).join(", ") + (parts.length > 6 ? ", ..." : "");
    document.getElementById("map-count").textContent =
      `${indices.length} ${indices.length === 1 ? "image" : "images"} selected: ${shown}`;
    const strip = document.getElementById("map-strip");
    strip.replaceChildren(...indices.map((index) => picture(index)).filter(Boolean).slice(0, 24)
      .map((image) => { const item = document.createElement("li"); item.append(image); return item; }));
  }

  const list = () => selected.map((index) => data.names[index]).join("\n") + "\n";

  map.addEventListener("pointerdown", (event) => {
    if (event.button || (event.pointerType === "touch" && draw.getAttribute("aria-pressed") !== "true")) return;
    line = [place(event)];
    map.setPointerCapture(event.pointerId);
    card.hidden = true;
  });
  map.addEventListener("pointermove", (event) => {
    if (!line) {
      show(nearest(place(event), 500), event);
      return;
    }
    line.push(place(event));
    lasso.setAttribute("d", `M${line.map((point) => point.map(Math.round)).join("L")}Z`);
  });
  map.addEventListener("pointerup", (event) => {
    if (!line) { show(nearest(place(event), 900), event); return; }
    const drawn = line;
    line = null;
    if (drawn.length < 4) {
      select([]);
      show(nearest(drawn[0], 900), event);
      return;
    }
    select(at.map((_, index) => index)
      .filter((index) => !dots[index].classList.contains("dim") && inside(at[index], drawn)));
  });
  map.addEventListener("pointercancel", () => { line = null; });
  map.addEventListener("pointerleave", () => { if (!line) card.hidden = true; });

  for (const chip of chips) {
    chip.addEventListener("click", () => {
      const pressed = chip.getAttribute("aria-pressed") === "true";
      chip.setAttribute("aria-pressed", !pressed);
      const on = chips.map((other) => other.getAttribute("aria-pressed") === "true");
      const any = on.includes(true);
      dots.forEach((dot, index) => {
        dot.classList.toggle("dim", any && !on[data.labels[index]]);
        dot.classList.toggle("lit", any && on[data.labels[index]]);
      });
    });
  }
  draw.addEventListener("click", () => {
    const on = draw.getAttribute("aria-pressed") !== "true";
    draw.setAttribute("aria-pressed", on);
    map.classList.toggle("drawing", on);
  });
  document.getElementById("map-clear").addEventListener("click", () => select([]));
  document.getElementById("map-copy").addEventListener("click", (event) => {
    const area = document.createElement("textarea");
    area.value = list();
    document.body.append(area);
    area.select();
    document.execCommand("copy");  // works in a file, where navigator.clipboard does not
    area.remove();
    event.target.textContent = "Copied";
    setTimeout(() => { event.target.textContent = "Copy names"; }, 1500);
  });
  document.getElementById("map-save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([list()], { type: "text/plain" }));
    link.download = "selection.txt";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  document.getElementById("map-tools").hidden = false;
})();
