/* Lines over time with a cursor, as SVG; dragging in them sets the time. */
function svg(name, parent, attributes = {}, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}
function html(name, parent, attributes = {}, text) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}
function ticksOf(low, high, wanted) {
  const step = round125((high - low) / wanted), out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) out.push(k * step);
  return out.length < 3 && wanted < 12 ? ticksOf(low, high, 1.5 * wanted) : { step, out };
}
/* Ticks of one axis have the same digits. */
function tickText(x, step, most) {
  if (most >= 1e5 || most < 1e-2) return x === 0 ? "0" : shown(x, Math.max(1, 1 + Math.round(Math.log10(most / step))));
  return x.toFixed(clamp(-Math.floor(Math.log10(step) + 1e-9), 0, 6)).replace("-", "−");
}

class Chart {
  constructor(parent, panel, span, seek) {
    this.span = span; this.panel = panel;
    this.lines = panel.lines.map((l) => ({ name: l.name, color: l.color, t: unpacked(l.t), y: coded(l.y, Float32Array) }));
    this.y = panel.y || this.range();
    const box = html("figure", parent, { class: "chart" });
    html("figcaption", box, {}, panel.title);
    const legend = html("div", box, { class: "legend" });
    this.values = this.lines.map((l) => {
      const entry = html("span", legend);
      html("i", entry, { style: `background:${l.color}` });
      html("span", entry, { class: "name", title: l.name }, l.name);
      return html("b", entry, {}, "");
    });
    this.box = html("div", box, { class: "plot" });
    /* Over the lines: they are not drawn again when it moves. */
    this.cursor = html("div", this.box, { class: "cursor", hidden: "" });
    this.svg = svg("svg", this.box, { role: "img", "aria-label": panel.title + " over time" });
    const where = (e) => {
      const r = this.svg.getBoundingClientRect();
      seek(this.span[0] + clamp((e.clientX - r.left - this.left) / this.wide, 0, 1) * (this.span[1] - this.span[0]));
    };
    if (seek) {
      this.svg.addEventListener("pointerdown", (e) => { this.svg.setPointerCapture(e.pointerId); where(e); });
      this.svg.addEventListener("pointermove", (e) => { if (e.buttons) where(e); });
    }
    new ResizeObserver(() => this.layout()).observe(this.box);
    this.layout();
  }
  range() {
    let low = Infinity, high = -Infinity;
    for (const l of this.lines) for (const v of l.y) if (Number.isFinite(v)) {
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
    if (!(high > low + 1e-9)) { /* a line, not its round-off */
      const mid = Number.isFinite(low) ? low : 0, some = Math.max(1e-3, 0.2 * Math.abs(mid));
      [low, high] = [mid - some, mid + some];
    }
    const room = 0.06 * (high - low);
    return [low - room, high + room];
  }
  layout() {
    const w = this.box.clientWidth, h = this.box.clientHeight;
    if (!w || !h) return;
    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    const [low, high] = this.y, [t0, t1] = this.span, most = Math.max(Math.abs(low), Math.abs(high));
    const vertical = ticksOf(low, high, Math.max(3, h / 34)), across = ticksOf(t0, t1, Math.max(2, w / 75));
    const words = vertical.out.map((v) => tickText(v, vertical.step, most));
    this.left = 10 + 6.2 * Math.max(2, ...words.map((x) => x.length)); this.wide = w - this.left - 8;
    const top = 4, tall = h - 20 - top;
    this.x = (t) => this.left + (t - t0) / (t1 - t0) * this.wide;
    const y = (v) => top + (high - v) / (high - low) * tall;
    vertical.out.forEach((v, k) => {
      svg("path", this.svg, { d: `M${this.left} ${y(v)}h${this.wide}`, class: Math.abs(v) < 1e-9 * most ? "zero" : "rule" });
      svg("text", this.svg, { x: this.left - 5, y: y(v) + 3.5, "text-anchor": "end" }, words[k]);
    });
    across.out.forEach((t, k) => {
      svg("path", this.svg, { d: `M${this.x(t)} ${top}v${tall}`, class: "rule" });
      const last = this.x(t) > w - 22;
      svg("text", this.svg, { x: last ? w - 2 : this.x(t), y: h - 5, "text-anchor": last ? "end" : "middle" },
        tickText(t, across.step, Math.max(Math.abs(t0), Math.abs(t1))) + (k === across.out.length - 1 ? " s" : ""));
    });
    const name = "clip" + Math.random().toString(36).slice(2);
    svg("rect", svg("clipPath", this.svg, { id: name }), { x: this.left, y: top, width: this.wide, height: tall });
    const inside = svg("g", this.svg, { "clip-path": `url(#${name})` });
    for (const l of this.lines) {
      let d = "", pen = "M";
      for (let k = 0; k < l.t.length; k++) {
        if (!Number.isFinite(l.y[k])) { pen = "M"; continue; }
        d += pen + this.x(l.t[k]).toFixed(1) + " " + clamp(y(l.y[k]), -1e4, 1e4).toFixed(1);
        pen = "L";
      }
      svg("path", inside, { d, class: "line", stroke: l.color });
    }
    Object.assign(this.cursor.style, { top: top + "px", height: tall + "px" });
    if (this.time !== undefined) this.show(this.time);
  }
  show(time) {
    this.time = time;
    this.cursor.hidden = !this.x;
    if (this.x) this.cursor.style.transform = `translateX(${this.x(clamp(time, this.span[0], this.span[1]))}px)`;
    this.lines.forEach((l, n) => {
      const y = l.y[rowAt(l.t, time + 1e-6 * (this.span[1] - this.span[0]))];
      this.values[n].textContent = shown(Math.abs(y) < 1e-9 * (this.y[1] - this.y[0]) ? 0 : y); /* no round-off */
    });
  }
}
