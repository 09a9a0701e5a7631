/* The scene: what stands where at a frame, seen by a camera; and its player. */
const FROM = -0.95, SUN = -1.27, HIGH = 0.96; /* where the camera begins; the light stands to its left, this high */
const WIDE = Math.tan(17 * Math.PI / 180); /* half of the camera's opening, along the shorter side */

class Camera {
  constructor(flat, around, size, from) {
    Object.assign(this, { flat, size, around, from });
    this.aspect = 1;
    this.reset();
  }
  reset() {
    this.turn = this.from; this.lift = 0.36; this.target = [0, 0, 0]; this.distance = 2 * this.size; this.touched = false;
    this.fit(this.around);
  }
  axes() {
    if (this.flat) return { right: [1, 0, 0], up: [0, 1, 0], back: [0, 0, 1] };
    const c = Math.cos(this.lift), back = [c * Math.cos(this.turn), c * Math.sin(this.turn), Math.sin(this.lift)];
    const right = [-Math.sin(this.turn), Math.cos(this.turn), 0];
    return { right, up: cross(back, right), back };
  }
  opening() { return this.aspect > 1 ? [WIDE * this.aspect, WIDE] : [WIDE, WIDE / this.aspect]; }
  /* Target and distance such that all points are just in view. */
  fit(points) {
    const { right, up, back } = this.axes(), room = 0.86, [tx, ty] = this.opening().map((t) => t * room),
      depth = this.flat ? 0 : 1;
    const most = (f) => points.reduce((m, p) => Math.max(m, f(p)), -Infinity);
    const x1 = most((p) => dot(p, right) / tx + depth * dot(p, back)),
      x0 = most((p) => -dot(p, right) / tx + depth * dot(p, back));
    const y1 = most((p) => dot(p, up) / ty + depth * dot(p, back)),
      y0 = most((p) => -dot(p, up) / ty + depth * dot(p, back));
    const eye = Math.max(x1 + x0, y1 + y0) / 2;
    this.distance = Math.max(eye, 1e-3 * this.size);
    this.target = add(scaled(right, tx * (x1 - x0) / 2), up, ty * (y1 - y0) / 2);
    if (depth) { /* turn about what is looked at, not about a point far before it */
      const near = most((p) => dot(p, back)), far = -most((p) => -dot(p, back)), mid = (near + far) / 2;
      this.target = add(this.target, back, mid);
      this.distance = Math.max(eye - mid, 1e-3 * this.size);
    }
  }
  matrices() {
    const { right, up, back } = this.axes(), [tx, ty] = this.opening(),
      eye = add(this.target, back, this.flat ? 50 * this.size : this.distance);
    const far = this.distance + 8 * this.size, near = Math.max(this.distance - 4 * this.size, 0.01 * this.distance);
    const lens = this.flat ? orthographic(tx * this.distance, ty * this.distance, 0, 100 * this.size)
      : perspective(tx, ty, near, far);
    return { view: product(lens, lookFrom(eye, right, up, back)), eye, near: this.flat ? -1 : near,
      pull: this.flat ? 0 : 1e-3 * lens[14], right, up, back };
  }
  orbit(dx, dy) {
    if (this.flat) return this.pan(dx, dy, 1);
    this.turn -= 0.008 * dx;
    this.lift = clamp(this.lift + 0.008 * dy, -1.5, 1.5);
    this.touched = true;
  }
  pan(dx, dy, height) {
    const { right, up } = this.axes(), s = 2 * this.opening()[1] * this.distance / (height === 1 ? this.pixels : height);
    this.target = add(add(this.target, right, -dx * s), up, dy * s);
    this.touched = true;
  }
  zoom(factor) { this.distance = clamp(this.distance * factor, 2e-3 * this.size, 12 * this.size); this.touched = true; }
  /* The line of sight through a point of the screen, x and y from -1 to 1. */
  ray(x, y) {
    const { right, up, back } = this.axes(), [tx, ty] = this.opening(), d = this.distance;
    if (this.flat) return { from: add(add(add(this.target, right, x * tx * d), up, y * ty * d), back, 50 * this.size),
      to: scaled(back, -1) };
    return { from: add(this.target, back, d), to: unit(add(add(scaled(back, -1), right, x * tx), up, y * ty)) };
  }
}

class Scene {
  constructor(root, data) {
    Object.assign(this, { root, data, frame: 0, forces: true, follow: false });
    this.canvas = root.querySelector("canvas");
    this.painter = new Painter(this.canvas);
    const flat = coded(data.around, Float32Array);
    this.around = Array.from({ length: flat.length / 3 }, (_, k) => Array.from(flat.subarray(3 * k, 3 * k + 3)));
    this.shapes = data.shapes.map((s) => this.shape(s));
    this.parts = data.parts.map((p) => ({ ...p, ...this.shapes[p.shape], motion: motion(p), first: rgb(p.color),
      second: otherTone(rgb(p.color)) }));
    this.grounds = data.grounds.map((g) => ({ ...g, motion: motion(g) }));
    const from = this.openSide();
    this.camera = new Camera(data.flat, this.around, data.size, from);
    this.sun = unit([Math.cos(from + SUN), Math.sin(from + SUN), 1.5 * HIGH]);
    this.lines = data.lines.map((l) => ({ ...l, points: unpacked(l.points),
      strokes: this.painter.pieces(new Float32Array(0)), drawn: -1 }));
    this.arrows = data.arrows && { ...data.arrows, who: coded(data.arrows.who, Uint16Array), at: unpacked(data.arrows.at),
      force: unpacked(data.arrows.force) };
    if (this.arrows) { let sum = 0; this.arrows.first = [...this.arrows.number.map((n) => (sum += n) - n), sum]; }
    this.wall = this.painter.pieces(new Float32Array(0));
    const moving = this.parts.filter((p) => p.motion.moves);
    this.followed = moving.length ? moving : this.parts;
  }
  /* The direction from which most planes are seen from the front, not from behind. */
  openSide() {
    const behind = (turn) => this.grounds.filter(({ motion: m }) => {
      const { r, p } = m.at(0), normal = Array.from(placed(r, p).subarray(8, 11)), far = 3 * this.data.size;
      return dot(add([far * Math.cos(turn), far * Math.sin(turn), 0.35 * far], r, -1), normal) < 0;
    }).length;
    const ways = [0, 1, -1, 2, -2, 3, -3, 4].map((k) => FROM + k * Math.PI / 4);
    return ways.reduce((best, turn) => (behind(turn) < behind(best) ? turn : best));
  }
  shape(s) {
    const vertices = coded(s.vertices, Float32Array), triangles = coded(s.triangles, Uint32Array),
      edges = coded(s.edges, Uint32Array);
    const marks = s.marks === null ? null : coded(s.marks, Uint8Array), solid = corners(vertices, triangles, marks),
      pieces = new Float32Array(3 * edges.length);
    edges.forEach((v, k) => pieces.set(vertices.subarray(3 * v, 3 * v + 3), 3 * k));
    let radius = 0;
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (let k = 0; k < vertices.length; k += 3) {
      radius = Math.max(radius, Math.hypot(vertices[k], vertices[k + 1], vertices[k + 2]));
      for (let c = 0; c < 3; c++) {
        low[c] = Math.min(low[c], vertices[k + c]);
        high[c] = Math.max(high[c], vertices[k + c]);
      }
    }
    return { mesh: this.painter.buffers(solid), corners: solid.at, edges: this.painter.pieces(pieces), radius,
      middle: mixed(low, high, 0.5) };
  }
  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    if (!w || !h) return;
    this.ratio = ratio;
    this.canvas.width = Math.round(w * ratio); this.canvas.height = Math.round(h * ratio);
    this.camera.aspect = w / h; this.camera.pixels = h;
    if (!this.camera.touched) this.camera.reset();
    this.wish();
  }
  wish() { /* drawn with the next picture of the screen, once */
    if (this.wished) return;
    this.wished = true;
    requestAnimationFrame(() => { this.wished = false; this.draw(); });
  }
  centre() {
    const sum = this.followed.reduce((s, p) => add(s, p.motion.at(this.frame).r), [0, 0, 0]);
    return scaled(sum, 1 / Math.max(1, this.followed.length));
  }
  go(frame) {
    const before = this.follow && this.followed.length ? this.centre() : null;
    this.frame = frame;
    if (before) this.camera.target = add(this.camera.target, add(this.centre(), before, -1));
    this.wish();
  }
  reach() { /* of the bodies from their middle */
    const c = this.centre();
    return this.followed.reduce((most, p) => Math.max(most, norm(add(p.motion.at(this.frame).r, c, -1)) + p.radius), 0);
  }
  setFollow(on) { /* the bodies come to the middle, as near as they are large */
    this.follow = on;
    if (!on || !this.followed.length) return this.wish();
    this.camera.target = this.centre();
    this.camera.distance = Math.min(this.camera.distance, 2 * this.reach() / Math.min(...this.camera.opening()));
    this.camera.touched = true;
    this.wish();
  }
  reset() { this.camera.reset(); this.setFollow(this.follow); }

  draw() {
    const gl = this.painter.gl, flat = this.data.flat;
    for (const p of this.parts) { const { r, p: turn } = p.motion.at(this.frame); p.at = r; p.model = placed(r, turn); }
    this.setCell(round125(this.camera.distance * WIDE / 15));
    const see = this.camera.matrices(), light = flat ? null : this.light();
    if (light) this.painter.castShadows(light.view, this.parts.filter((p) => p.opacity > 0.5));
    this.painter.begin();
    this.common = {
      view: see.view, eye: see.eye, sun: this.sun, shadows: 0, shadowOn: light ? 1 : 0,
      toLight: light ? light.view : see.view,
      shadowStep: 1 / this.painter.map, shadowLift: light ? light.lift : 0, plain: flat ? 1 : 0,
      pixels: [this.canvas.width / 2, this.canvas.height / 2], nearest: see.near, pull: see.pull,
    };
    if (flat) this.drawFlat(); else this.drawSpace(see);
    this.drawArrows();
    gl.bindVertexArray(null);
    this.drawAxes(see);
    this.root.dataset.frame = Math.floor(this.frame + 1e-9);
    this.root.dataset.drawn = Number(this.root.dataset.drawn || 0) + 1;
  }
  setCell(cell) { /* of the grid: finer where one looks closely */
    if (cell === this.cell) return;
    this.cell = cell;
    this.root.querySelector(".scale").textContent = `grid ${shown(cell)} m`;
  }
  drawSpace(see) {
    const gl = this.painter.gl, solid = this.parts.filter((p) => p.opacity >= 0.999);
    const glass = this.parts.filter((p) => p.opacity < 0.999).sort((a, b) => dot(add(a.at, b.at, -1), see.back));
    solid.forEach((p) => this.drawSolid(p));
    this.drawGrounds(see, true);
    gl.depthMask(false);
    solid.forEach((p) => this.drawEdges(p));
    this.drawLines();
    for (const p of glass) {
      gl.enable(gl.CULL_FACE);
      for (const side of [gl.FRONT, gl.BACK]) { gl.cullFace(side); this.drawSolid(p); }
      gl.disable(gl.CULL_FACE);
      this.drawEdges(p);
    }
    this.drawGrounds(see, false);
    gl.depthMask(true);
  }
  /* In the plane the order of the parts says what lies before what. */
  drawFlat() {
    const gl = this.painter.gl;
    this.drawWalls();
    for (const p of this.parts) {
      gl.clear(gl.DEPTH_BUFFER_BIT);
      this.drawSolid(p);
      gl.depthFunc(gl.ALWAYS);
      this.drawEdges(p);
      gl.depthFunc(gl.LEQUAL);
    }
    gl.clear(gl.DEPTH_BUFFER_BIT);
    this.drawLines();
  }
  drawSolid(p) {
    this.painter.use(this.painter.mesh, { ...this.common, model: p.model, middle: p.middle, color: p.first, second: p.second,
      opacity: p.opacity });
    this.painter.triangles(p.mesh);
  }
  drawEdges(p) {
    if (!p.edges.count) return;
    const color = [...scaled(p.first, 0.38), 0.85 * Math.max(0.4, p.opacity)];
    this.painter.use(this.painter.stroke, { ...this.common, model: p.model, color, width: 1.4 * this.ratio });
    this.painter.strokes(p.edges);
  }
  drawLines() {
    const nothing = placed([0, 0, 0], [1, 0, 0, 0]);
    for (const l of this.lines) {
      const rows = l.points.length / (3 * l.count);
      const now = l.trace ? this.frame : Math.min(this.frame, rows - 1);
      if (l.drawn !== now) { this.painter.again(l.strokes, this.pieces(l, rows)); l.drawn = now; }
      this.painter.use(this.painter.stroke, { ...this.common, model: nothing, color: [...rgb(l.color), 1],
        width: l.width * this.ratio });
      this.painter.strokes(l.strokes);
    }
  }
  /* The pieces of a line at this frame, without those that touch nan. */
  pieces(l, rows) {
    const k = Math.min(Math.floor(this.frame), rows - 1), n = Math.min(k + 1, rows - 1), s = n > k ? this.frame - k : 0,
      out = [];
    const last = l.trace ? Math.floor(this.frame) : l.count - 1;
    const place = (row, j) => l.points.subarray(3 * (row * l.count + j), 3 * (row * l.count + j) + 3);
    const point = (j) => (s ? mixed(place(k, j), place(n, j), s) : Array.from(place(k, j)));
    let before = point(0);
    for (let j = 1; j <= Math.min(l.trace ? last + 1 : last, l.count - 1); j++) {
      const now = j > last ? mixed(before, point(j), this.frame - last) : point(j);
      if (before.every(Number.isFinite) && now.every(Number.isFinite)) out.push(...before, ...now);
      before = now;
    }
    return new Float32Array(out);
  }
  /* The light's view of the bodies of this frame, in steps: shadows do not crawl. */
  light() {
    const near = this.parts.filter((p) => p.motion.moves || p.radius < this.data.size), sun = this.sun;
    if (!near.length) return null;
    let low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (const p of near) for (let c = 0; c < 3; c++) {
      low[c] = Math.min(low[c], p.at[c] - p.radius);
      high[c] = Math.max(high[c], p.at[c] + p.radius);
    }
    const middle = mixed(low, high, 0.5), reach = 1.25 * norm(add(high, middle, -1));
    const radius = 1.3 ** Math.ceil(Math.log(reach) / Math.log(1.3));
    const right = unit(cross([0, 0, 1], sun)), up = cross(sun, right), texel = 2 * radius / this.painter.map;
    const snap = (v) => Math.round(dot(middle, v) / (8 * texel)) * 8 * texel;
    const centre = add(add(scaled(right, snap(right)), up, snap(up)), sun, dot(middle, sun));
    const eye = add(centre, sun, 2 * radius);
    return { view: product(orthographic(radius, radius, 0, 8 * radius), lookFrom(eye, right, up, sun)), lift: 1.6 * texel };
  }
  planes() {
    return this.grounds.map((g) => {
      const { r, p } = g.motion.at(this.frame), model = placed(r, p);
      return { r, model, normal: Array.from(model.subarray(8, 11)) };
    });
  }
  drawPlane(values) {
    this.painter.use(this.painter.plane, { ...this.common, cell: this.cell, ...values });
    this.painter.gl.bindVertexArray(this.painter.empty);
    this.painter.gl.drawArrays(this.painter.gl.TRIANGLE_STRIP, 0, 4);
  }
  /* Planes seen from the front, or those seen from behind: these hide nothing. */
  drawGrounds(see, front) {
    const all = this.planes(), size = this.data.size;
    for (const plane of all) {
      const { r, model, normal } = plane, axes = [0, 4].map((k) => Array.from(model.subarray(k, k + 3)));
      if (dot(add(see.eye, r, -1), normal) > 0 !== front) continue;
      const on = this.around.map((p) => axes.map((a) => dot(add(p, r, -1), a)));
      const low = [0, 1].map((k) => Math.min(...on.map((p) => p[k]))),
        high = [0, 1].map((k) => Math.max(...on.map((p) => p[k])));
      const others = all.filter((o) => o !== plane && Math.abs(dot(o.normal, normal)) < 0.9).slice(0, 8),
        cuts = new Float32Array(32);
      others.forEach((o, k) => cuts.set([...o.normal, dot(o.normal, o.r) - 1e-4 * size], 4 * k));
      const box = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (high[0] - low[0]) / 2, (high[1] - low[1]) / 2];
      this.drawPlane({ model, normal, faint: 0, cuts, cutters: others.length, margin: 0.55 * size, box });
    }
  }
  /* In the plane: a faint grid, and the planes from their edges. */
  drawWalls() {
    const gl = this.painter.gl, far = 40 * this.data.size;
    gl.disable(gl.DEPTH_TEST);
    this.drawPlane({ model: placed([0, 0, 0], [1, 0, 0, 0]), box: [0, 0, far, far], margin: 1, normal: [0, 0, 1], faint: 1,
      cutters: 0 });
    this.planes().forEach((plane) => this.drawWall(plane));
    gl.enable(gl.DEPTH_TEST);
  }
  /* A plane seen from its edge: a line, hatched behind. */
  drawWall({ r, normal }) {
    const across = [-normal[1], normal[0], 0];
    if (norm(across) < 0.5) return;
    const d = unit(across), reach = this.around.map((p) => dot(add(p, r, -1), d)), room = 0.25 * this.data.size;
    const low = Math.min(...reach) - room, high = Math.max(...reach) + room, step = this.data.size / 45, out = [];
    const point = (s) => add(r, d, s);
    out.push(...point(low), ...point(high));
    for (let s = Math.ceil(low / step) * step; s < high; s += step) {
      out.push(...point(s), ...add(add(point(s), normal, -0.8 * step), d, -0.8 * step));
    }
    const draw = (pieces, width, alpha) => {
      this.painter.again(this.wall, new Float32Array(pieces));
      this.painter.use(this.painter.stroke, { ...this.common, model: placed([0, 0, 0], [1, 0, 0, 0]),
        color: [0.30, 0.35, 0.41, alpha], width: width * this.ratio });
      this.painter.strokes(this.wall);
    };
    draw(out.slice(6), 1.1, 0.6);
    draw(out.slice(0, 6), 2, 1);
  }
  /* The arrows of this frame; those that act in the next one too move there. */
  arrowsNow() {
    const a = this.arrows, k = Math.floor(this.frame), s = this.frame - k, out = [], next = new Map();
    const row = (x, j) => x.subarray(3 * j, 3 * j + 3);
    if (s) for (let j = a.first[k + 1]; j < a.first[k + 2]; j++) next.set(a.who[j], j);
    for (let j = a.first[k]; j < a.first[k + 1]; j++) {
      const n = next.has(a.who[j]) ? next.get(a.who[j]) : j;
      out.push({ at: mixed(row(a.at, j), row(a.at, n), s), d: mixed(row(a.force, j), row(a.force, n), s) });
    }
    return out;
  }
  drawArrows() {
    const shown = this.arrows && this.forces ? this.arrowsNow() : [], gl = this.painter.gl;
    this.root.dataset.arrows = shown.length;
    if (!shown.length) return;
    const thick = 0.026 * this.arrows.longest, red = rgb(this.arrows.color);
    const draw = (opacity) => {
      this.painter.use(this.painter.mesh, { ...this.common, shadowOn: 0, color: red, second: red, opacity });
      for (const { at, d } of shown) {
        const length = norm(d), head = Math.min(0.30 * this.arrows.longest, 0.55 * length),
          w = Math.min(thick, 0.1 * length + 0.3 * thick);
        if (length < 1e-3 * this.arrows.longest) continue;
        this.painter.set({ model: along(at, d, w, length - head) });
        this.painter.triangles(this.painter.shaft);
        this.painter.set({ model: along(add(at, unit(d), length - head), d, Math.min(2.8 * w, 0.36 * head), head) });
        this.painter.triangles(this.painter.head);
      }
    };
    if (this.data.flat) { gl.clear(gl.DEPTH_BUFFER_BIT); return draw(1); }
    gl.enable(gl.STENCIL_TEST); gl.stencilFunc(gl.ALWAYS, 1, 1); gl.stencilOp(gl.KEEP, gl.KEEP, gl.REPLACE);
    draw(1);
    /* Seen faintly through what hides them. */
    gl.depthMask(false); gl.depthFunc(gl.GREATER); gl.stencilFunc(gl.NOTEQUAL, 1, 1);
    draw(0.5);
    gl.disable(gl.STENCIL_TEST); gl.depthMask(true); gl.depthFunc(gl.LEQUAL);
  }
  drawAxes({ right, up, back }) {
    const box = this.root.querySelector(".axes"),
      all = [["x", [1, 0, 0], "#c0392b"], ["y", [0, 1, 0], "#2e8b57"], ["z", [0, 0, 1], "#2c6fbb"]];
    const way = `${this.camera.turn} ${this.camera.lift}`;
    if (this.way === way) return;
    this.way = way;
    box.replaceChildren();
    const seen = all.filter(([, e]) => !this.data.flat || !e[2]).sort((a, b) => dot(a[1], back) - dot(b[1], back));
    seen.forEach(([name, e, color]) => {
      const x = 24 * dot(e, right), y = -24 * dot(e, up);
      svg("path", box, { d: `M0 0L${x} ${y}`, stroke: color });
      svg("text", box, { x: 1.38 * x, y: 1.38 * y, fill: color }, name);
    });
  }
  /* The name of what is seen at a point of the screen. */
  nameAt(x, y) {
    const { from, to } = this.camera.ray(x, y);
    let best = Infinity, name = "";
    for (const p of this.parts) {
      if (!p.model) continue;
      const off = add(p.at, from, -1), along_ = dot(off, to);
      if (dot(off, off) - along_ * along_ > p.radius * p.radius) continue;
      const column = (k) => Array.from(p.model.subarray(4 * k, 4 * k + 3)),
        local = (v) => [dot(v, column(0)), dot(v, column(1)), dot(v, column(2))];
      const hit = nearestHit(p.corners, local(add(from, p.at, -1)), local(to));
      if (hit < best || (this.data.flat && hit < Infinity)) { best = hit; name = p.name; }
    }
    return name;
  }
}
function nearestHit(at, from, to) {
  let best = Infinity;
  const point = (k) => [at[k], at[k + 1], at[k + 2]];
  for (let k = 0; k < at.length; k += 9) {
    const a = point(k), e = add(point(k + 3), a, -1), f = add(point(k + 6), a, -1), h = cross(to, f), det = dot(e, h);
    if (Math.abs(det) < 1e-14) continue;
    const s = add(from, a, -1), u = dot(s, h) / det, q = cross(s, e), v = dot(to, q) / det, t = dot(f, q) / det;
    if (u >= 0 && v >= 0 && u + v <= 1 && t > 0) best = Math.min(best, t);
  }
  return best;
}

/* Mouse and fingers: one turns, two (or the right button, or shift) move, wheel and pinch zoom. */
function steer(scene, root) {
  const canvas = scene.canvas, fingers = new Map(), hint = root.querySelector(".hint");
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return { d: Math.hypot(a.x - b.x, a.y - b.y) || 1, x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };
  canvas.addEventListener("pointerdown", (e) => {
    canvas.setPointerCapture(e.pointerId);
    fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    hint.hidden = true;
  });
  canvas.addEventListener("pointermove", (e) => {
    const last = fingers.get(e.pointerId);
    if (!last) return point(e);
    const before = fingers.size === 2 ? spread() : null, dx = e.clientX - last.x, dy = e.clientY - last.y;
    fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    if (before) {
      const now = spread();
      scene.camera.zoom(before.d / now.d);
      scene.camera.pan(now.x - before.x, now.y - before.y, canvas.clientHeight);
    } else if (e.shiftKey || e.buttons & 6) scene.camera.pan(dx, dy, canvas.clientHeight);
    else scene.camera.orbit(dx, dy);
    scene.wish();
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (e) => fingers.delete(e.pointerId));
  canvas.addEventListener("pointerleave", () => { hint.hidden = true; });
  canvas.addEventListener("contextmenu", (e) => e.preventDefault());
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    scene.camera.zoom(Math.exp(clamp(e.deltaY, -120, 120) * 0.0016));
    scene.wish();
  }, { passive: false });
  canvas.addEventListener("dblclick", () => scene.reset());
  function point(e) { /* what is this? */
    const r = canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    const name = e.pointerType === "touch" ? "" : scene.nameAt(2 * x / r.width - 1, 1 - 2 * y / r.height);
    hint.hidden = !name;
    hint.textContent = name;
    hint.style.left = Math.min(x + 12, r.width - hint.offsetWidth - 4) + "px";
    hint.style.top = Math.max(4, y - 26) + "px";
  }
}

class Player {
  constructor(root, scene, data) {
    Object.assign(this, { root, scene, data, playing: false, frame: 0 });
    const find = (name) => root.querySelector(name);
    this.button = find(".play"); this.slider = find(".time"); this.clock = find(".clock");
    this.speed = find(".speed select"); this.loop = find(".loop"); this.line = find(".happened");
    this.last = data.t.length - 1; this.span = [data.t[0], data.t[this.last]]; this.length = this.span[1] - this.span[0];
    this.digits = clamp(3 - Math.floor(Math.log10(this.length)), 0, 12);
    this.charts = data.panels.map((p) => new Chart(find(".charts"), p, this.span, (t) => this.seek(t)));
    this.slider.max = this.last;
    for (const s of [0.05, 0.1, 0.25, 0.5, 1, 2, 4]) html("option", this.speed, { value: s }, s + "×");
    this.speed.value = "1";
    this.button.addEventListener("click", () => this.toggle());
    this.slider.addEventListener("input", () => { this.stop(); this.show(Number(this.slider.value)); });
    this.ticks();
    this.show(0);
  }
  /* The frame at a time, between two where need be. */
  frameAt(time) {
    const t = this.data.t, a = rowAt(t, time);
    return a < this.last ? a + clamp((time - t[a]) / (t[a + 1] - t[a] || 1), 0, 1) : a;
  }
  timeAt(frame) {
    const k = Math.min(Math.floor(frame), this.last), n = Math.min(k + 1, this.last);
    return this.data.t[k] + (frame - k) * (this.data.t[n] - this.data.t[k]);
  }
  show(frame) {
    this.frame = clamp(frame, 0, this.last);
    const time = this.timeAt(this.frame);
    this.scene.go(this.frame);
    this.slider.value = Math.round(this.frame);
    this.slider.style.setProperty("--done", 100 * this.frame / this.last + "%");
    this.clock.textContent = "t = " + time.toFixed(this.digits) + " s";
    this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    this.charts.forEach((c) => c.show(time));
    if (this.line) this.say(time);
  }
  seek(time) { this.stop(); this.show(Math.round(this.frameAt(time))); }
  /* Ticks where something happened; what happens within a few pixels shares one. */
  ticks() {
    const box = this.root.querySelector(".ticks");
    this.groups = [];
    for (const [time, words] of this.data.events) {
      const frame = this.frameAt(time), last = this.groups[this.groups.length - 1];
      if (last && frame - last.frame < 0.008 * this.last) last.all.push([time, words]);
      else this.groups.push({ frame, all: [[time, words]] });
    }
    for (const g of this.groups) {
      const said = g.all.slice(0, 8).map(([time, words]) => `${time.toFixed(this.digits)} s: ${words}`);
      if (g.all.length > 8) said.push(`and ${g.all.length - 8} more`);
      const tick = html("i", box, { title: said.join("\n"), style: `left:${100 * g.frame / this.last}%`,
        class: g.all.length > 1 ? "many" : "" });
      tick.addEventListener("click", () => { this.stop(); this.show(Math.min(this.last, Math.ceil(g.frame - 1e-6))); });
    }
  }
  /* The event that was last, with all that happened with it. */
  say(time) {
    const past = this.data.events.filter(([when]) => when <= time + 1e-9 * this.length);
    if (!past.length) { this.line.textContent = "nothing has happened yet"; this.line.classList.remove("now"); return; }
    const when = past[past.length - 1][0], near = past.filter(([t]) => when - t < 2e-3 * this.length);
    const words = near.slice(0, 4).map((e) => e[1]).join(", ") + (near.length > 4 ? ` and ${near.length - 4} more` : "");
    this.line.textContent = `${when.toFixed(this.digits)} s: ${words}`;
    this.line.title = this.line.textContent;
    this.line.classList.toggle("now", time - when < 0.02 * this.length);
  }
  jump(way) {
    const frames = this.groups.map((g) => Math.min(this.last, Math.ceil(g.frame - 1e-6)));
    const to = way > 0 ? frames.find((f) => f > this.frame) : frames.filter((f) => f < this.frame).pop();
    this.stop();
    if (to !== undefined) this.show(to);
  }
  step(n) { this.stop(); this.show(Math.round(this.frame) + n); }
  toggle() { if (this.playing) this.stop(); else this.start(); }
  stop() {
    if (!this.playing) return;
    this.playing = false;
    this.button.textContent = "Play";
    this.show(Math.round(this.frame)); /* what stands still is a frame that was computed */
  }
  start() {
    if (this.frame >= this.last) this.show(0);
    this.playing = true; this.then = null;
    this.button.textContent = "Pause";
    requestAnimationFrame((now) => this.tick(now));
  }
  tick(now) {
    if (!this.playing) return;
    const passed = this.then === null ? 0 : Math.min(now - this.then, 250);
    this.then = now;
    const time = this.timeAt(this.frame) + passed / 1000 * Number(this.speed.value) * this.length / this.data.duration;
    if (time >= this.span[1]) {
      this.show(this.loop.checked ? 0 : this.last);
      if (!this.loop.checked) return this.stop();
    } else this.show(this.frameAt(time));
    requestAnimationFrame((next) => this.tick(next));
  }
}

function keys(scene, player, root) {
  const click = (name) => () => { const e = root.querySelector(name); if (e) e.click(); };
  const known = {
    c: click(".forces"), f: click(".follow"), r: click(".reset"),
    ...(player && {
      " ": () => player.toggle(), ArrowLeft: (e) => (e.shiftKey ? player.jump(-1) : player.step(-1)),
      ArrowRight: (e) => (e.shiftKey ? player.jump(1) : player.step(1)), Home: () => player.step(-player.last),
      End: () => player.step(player.last),
    }),
  };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "SELECT" || !known[e.key]) return;
    if (e.key === " " && e.target.matches("button:not(.play), input[type=checkbox]")) return;
    e.preventDefault();
    known[e.key](e);
  });
}

function open(root) {
  const data = JSON.parse(root.querySelector("script").textContent),
    on = (name, kind, f) => root.querySelectorAll(name).forEach((e) => e.addEventListener(kind, f));
  root.classList.toggle("flat", data.flat);
  const hint = root.querySelector(".hint");
  let scene;
  try { scene = new Scene(root, data); } catch (error) {
    hint.hidden = false;
    hint.textContent = "No picture: " + error.message;
    root.dataset.error = String(error);
    throw error;
  }
  const player = data.t.length > 1 ? new Player(root, scene, data) : null;
  if (!player) for (const p of data.panels) {
    const t = p.lines.flatMap((l) => Array.from(unpacked(l.t)));
    new Chart(root.querySelector(".charts"), p, [Math.min(...t), Math.max(...t)], null);
  }
  on(".forces", "change", (e) => { scene.forces = e.target.checked; scene.wish(); });
  on(".follow", "change", (e) => scene.setFollow(e.target.checked));
  on(".reset", "click", () => scene.reset());
  /* On a long way small bodies would be lost. */
  if (player && scene.followed.length && scene.reach() < 0.04 * data.size) root.querySelector(".follow").click();
  on(".before", "click", () => player.jump(-1));
  on(".after", "click", () => player.jump(1));
  root.scene = scene; /* for those who want to ask it something */
  steer(scene, root);
  keys(scene, player, root);
  new ResizeObserver(() => scene.resize()).observe(root.querySelector(".view"));
}
document.querySelectorAll(".player").forEach(open);
