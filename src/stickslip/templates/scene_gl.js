/* Draws meshes, planes, lines and arrows with WebGL 2: one light with soft shadows, everything else is sky. */
const SKY = `
vec3 linear(vec3 c) { return pow(c, vec3(2.2)); }
vec3 screen(vec3 c) { c = c / (1.0 + 0.12 * c); return pow(clamp(c, 0.0, 1.0), vec3(1.0 / 2.2)); }`;
const SHADOW = `
uniform highp sampler2DShadow shadows; uniform mat4 toLight; uniform float shadowOn, shadowStep, shadowLift;
float lit(vec3 at, vec3 n, float spin) {
  if (shadowOn < 0.5) return 1.0;
  vec4 s = toLight * vec4(at + n * shadowLift, 1.0);
  vec3 p = s.xyz * 0.5 + 0.5;
  vec2 edge = min(p.xy, 1.0 - p.xy);
  float inside = smoothstep(0.0, 0.04, min(edge.x, edge.y));
  if (inside <= 0.0 || p.z > 1.0) return 1.0;
  float sum = 0.0;
  for (int k = 0; k < 10; k++) { /* a spiral of samples, turned from pixel to pixel */
    float a = float(k) * 2.399963 + spin, r = sqrt((float(k) + 0.5) / 10.0) * 2.6 * shadowStep;
    sum += texture(shadows, vec3(p.xy + r * vec2(cos(a), sin(a)), p.z - 0.0006));
  }
  return mix(1.0, sum / 10.0, inside);
}
float noise(vec2 p) { return 6.2831853 * fract(52.9829189 * fract(dot(p, vec2(0.06711056, 0.00583715)))); }`;
const MESH = {
  vertex: `
in vec3 at, normal; in float mark;
uniform mat4 model, view; uniform vec3 middle; out vec3 where, facing, inside; flat out float tone;
void main() {
  vec4 w = model * vec4(at, 1.0);
  where = w.xyz; inside = at - middle; facing = mat3(model) * normal; tone = mark; gl_Position = view * w;
}`,
  fragment: `
in vec3 where, facing, inside; flat in float tone;
uniform vec3 color, second, sun, eye; uniform float opacity, plain; out vec4 seen;
${SKY}${SHADOW}
void main() {
  vec3 n = normalize(gl_FrontFacing ? facing : -facing), v = normalize(eye - where);
  /* Octants: the product of three signs, with soft borders. */
  vec3 sides = clamp(inside / max(fwidth(inside), 1e-9), -1.0, 1.0);
  float share = tone > 1.5 ? 0.5 + 0.5 * sides.x * sides.y * sides.z : tone;
  vec3 base = mix(linear(color), linear(second), share);
  if (plain > 0.5) { seen = vec4(pow(base, vec3(1.0 / 2.2)) * opacity, opacity); return; }
  float light = max(dot(n, sun), 0.0);
  float direct = light > 0.0 ? light * lit(where, n, noise(gl_FragCoord.xy)) : 0.0;
  vec3 sky = mix(vec3(0.30, 0.28, 0.27), vec3(0.58, 0.63, 0.72), 0.5 + 0.5 * n.z);
  float back = 0.16 * max(dot(n, normalize(vec3(-sun.x, -sun.y, 0.15))), 0.0);
  float gloss = pow(max(dot(n, normalize(sun + v)), 0.0), 40.0) * (direct > 0.0 ? 0.16 : 0.0);
  float rim = 0.10 * pow(1.0 - max(dot(n, v), 0.0), 3.0);
  vec3 c = base * (sky + back + vec3(1.0, 0.96, 0.90) * 0.92 * direct) + gloss + rim * vec3(0.7, 0.8, 1.0);
  seen = vec4(screen(c) * opacity, opacity);
}` };
const DEPTH = {
  vertex: "in vec3 at; uniform mat4 model, view; void main() { gl_Position = view * model * vec4(at, 1.0); }",
  fragment: "void main() {}" };
const PLANE = {
  vertex: `
uniform mat4 model, view; uniform vec4 box; uniform float margin; out vec3 where; out vec2 on;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
  on = box.xy + corner * (box.zw + margin);
  vec4 w = model * vec4(on, 0.0, 1.0);
  where = w.xyz; gl_Position = view * w;
}`,
  fragment: `
in vec3 where; in vec2 on;
uniform vec4 box, cuts[8]; uniform vec3 sun, normal, eye; uniform float margin, cell, faint; uniform int cutters;
out vec4 seen;
${SKY}${SHADOW}
float grid(vec2 p, float width) { /* lines of about this many pixels, at whole numbers */
  vec2 w = fwidth(p), d = abs(fract(p - 0.5) - 0.5) / max(w, 1e-6);
  vec2 line = (1.0 - smoothstep(width - 0.5, width + 0.5, d)) * (1.0 - smoothstep(0.25, 0.6, w));
  return max(line.x, line.y);
}
void main() {
  for (int k = 0; k < cutters; k++) if (dot(cuts[k].xyz, where) < cuts[k].w) discard;
  float away = length(max(abs(on - box.xy) - box.zw, 0.0)) / margin;
  float fade = 1.0 - smoothstep(0.15, 1.0, away);
  bool front = dot(eye - where, normal) > 0.0;
  float lines = max(0.20 * grid(on / cell, 0.5), 0.42 * grid(on / (5.0 * cell), 0.7));
  if (faint > 0.5) { seen = vec4(vec3(0.55, 0.62, 0.70), 1.0) * 0.75 * lines; return; }
  float light = max(dot(normal, sun), 0.0);
  float direct = front ? light * lit(where, normal, noise(gl_FragCoord.xy)) : light;
  vec2 tile = step(0.5, fract(floor(on / (5.0 * cell)) * 0.5));
  float check = abs(tile.x - tile.y);
  vec3 base = mix(vec3(0.80, 0.83, 0.87), vec3(0.75, 0.785, 0.83), check);
  vec3 c = screen(base * (vec3(0.53, 0.56, 0.61) + 0.58 * direct));
  c = mix(c, vec3(0.36, 0.42, 0.50), lines);
  float a = fade * (front ? 1.0 : 0.05 + 0.4 * lines);
  seen = vec4(c * a, a);
}` };
const STROKE = { /* pixels: half of the width and height; on: along, across and length in pixels, linear on the screen */
  vertex: `
in vec3 from, to; uniform mat4 model, view; uniform vec2 pixels; uniform float width, nearest, pull; out vec4 on;
void main() {
  vec4 a = view * model * vec4(from, 1.0), b = view * model * vec4(to, 1.0);
  if (a.w < nearest && b.w > nearest) a = mix(a, b, (nearest - a.w) / (b.w - a.w));
  else if (b.w < nearest && a.w > nearest) b = mix(b, a, (nearest - b.w) / (a.w - b.w));
  vec2 d = (b.xy / b.w - a.xy / a.w) * pixels;
  float size = length(d), r = 0.5 * width + 0.5;
  d = size > 1e-4 ? d / size : vec2(1.0, 0.0);
  float end = float(gl_VertexID & 1), side = float(gl_VertexID >> 1) * 2.0 - 1.0;
  vec4 p = end < 0.5 ? a : b;
  on = vec4(end < 0.5 ? -r : size + r, side * r, size, 1.0) * p.w;
  p.xy += (d * (end * 2.0 - 1.0) + vec2(-d.y, d.x) * side) * r / pixels * p.w;
  p.z += pull; /* as much nearer everywhere, in parts of the distance */
  gl_Position = p;
}`,
  fragment: `
in vec4 on; uniform vec4 color; uniform float width; out vec4 seen;
void main() {
  vec3 at = on.xyz / on.w;
  float past = max(max(-at.x, at.x - at.z), 0.0), r = 0.5 * width + 0.5;
  float a = color.a * clamp(r - length(vec2(past, at.y)), 0.0, 1.0);
  if (a <= 0.003) discard;
  seen = vec4(color.rgb * a, a);
}` };

function rgb(hex) { return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255); }
/* A second tone that differs from the first, whatever that is. */
function otherTone(c) {
  const grey = 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2];
  return grey > 0.40 ? scaled(c, 0.66) : mixed(c, [1, 1, 1], 0.45);
}
/* Corners with normals: smooth where triangles meet at less than forty degrees, sharp elsewhere. */
function corners(vertices, triangles, marks) {
  const n = triangles.length / 3, at = new Float32Array(9 * n), normals = new Float32Array(9 * n),
    tones = new Float32Array(3 * n);
  const point = (k) => [vertices[3 * k], vertices[3 * k + 1], vertices[3 * k + 2]];
  let size = 0, volume = 0;
  for (const v of vertices) size = Math.max(size, Math.abs(v));
  const faces = [], places = new Map(), keys = [];
  for (let f = 0; f < n; f++) {
    const [a, b, c] = [0, 1, 2].map((k) => point(triangles[3 * f + k])), area = cross(add(b, a, -1), add(c, a, -1));
    volume += dot(a, cross(b, c));
    faces.push(area);
    [a, b, c].forEach((p, k) => {
      at.set(p, 9 * f + 3 * k);
      tones[3 * f + k] = !marks ? 2 : marks.length ? marks[f] : 0;
      const key = p.map((x) => Math.round(1e5 * x / (size || 1))).join();
      keys.push(key);
      if (!places.has(key)) places.set(key, []);
      places.get(key).push(f);
    });
  }
  const inward = volume < -1e-9 * size ** 3;
  const units = faces.map(unit);
  for (let f = 0; f < n; f++) for (let k = 0; k < 3; k++) {
    let sum = [0, 0, 0];
    for (const g of places.get(keys[3 * f + k])) if (dot(units[f], units[g]) > 0.76) sum = add(sum, faces[g]);
    normals.set(unit(norm(sum) > 0 ? sum : faces[f]), 9 * f + 3 * k);
  }
  if (inward) { /* wound the other way round */
    for (let f = 0; f < n; f++) {
      for (const x of [at, normals]) {
        const b = x.slice(9 * f + 3, 9 * f + 6);
        x.copyWithin(9 * f + 3, 9 * f + 6, 9 * f + 9);
        x.set(b, 9 * f + 6);
      }
    }
    for (let k = 0; k < normals.length; k++) normals[k] = -normals[k];
  }
  return { at, normals, tones, count: 3 * n };
}
/* A body of revolution about the third axis, (radius, height) from the bottom up. */
function revolved(profile, sectors) {
  const vertices = [], triangles = [];
  for (const [r, h] of profile) for (let k = 0; k < sectors; k++) {
    vertices.push(r * Math.cos(2 * Math.PI * k / sectors), r * Math.sin(2 * Math.PI * k / sectors), h);
  }
  for (let i = 0; i + 1 < profile.length; i++) for (let k = 0; k < sectors; k++) {
    const a = i * sectors + k, b = i * sectors + (k + 1) % sectors;
    triangles.push(a, b, a + sectors, b, b + sectors, a + sectors);
  }
  return corners(vertices, triangles, []);
}

class Painter {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: true, stencil: true, premultipliedAlpha: true,
      powerPreference: "low-power" });
    if (!gl) throw new Error("this browser has no WebGL 2");
    this.gl = gl; this.canvas = canvas;
    this.mesh = this.program(MESH); this.depth = this.program(DEPTH); this.plane = this.program(PLANE);
    this.stroke = this.program(STROKE);
    this.empty = gl.createVertexArray();
    this.map = 2048;
    this.shadows = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.shadows);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, this.map, this.map);
    const soft = { MIN_FILTER: gl.LINEAR, MAG_FILTER: gl.LINEAR, WRAP_S: gl.CLAMP_TO_EDGE, WRAP_T: gl.CLAMP_TO_EDGE,
      COMPARE_MODE: gl.COMPARE_REF_TO_TEXTURE };
    for (const [key, value] of Object.entries(soft)) gl.texParameteri(gl.TEXTURE_2D, gl["TEXTURE_" + key], value);
    this.frame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadows, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.shaft = this.buffers(revolved([[0, 0], [1, 0], [1, 1], [0, 1]], 20));
    this.head = this.buffers(revolved([[0, 0], [1, 0], [0, 1]], 24));
  }
  program({ vertex, fragment }) {
    const gl = this.gl, made = gl.createProgram(), start = "#version 300 es\nprecision highp float;\n";
    [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]].forEach(([kind, text]) => {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, start + text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    });
    ["at", "normal", "mark", "from", "to"].forEach((name, k) => gl.bindAttribLocation(made, k, name));
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
    const places = {};
    for (let k = 0; k < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); k++) {
      const u = gl.getActiveUniform(made, k);
      places[u.name.replace("[0]", "")] = { where: gl.getUniformLocation(made, u.name), kind: u.type };
    }
    return { made, places };
  }
  use(program, values) {
    this.gl.useProgram(program.made);
    this.now = program;
    this.set(values);
  }
  set(values) {
    const gl = this.gl;
    for (const [name, value] of Object.entries(values)) {
      const u = this.now.places[name];
      if (!u) continue;
      if (u.kind === gl.FLOAT_MAT4) gl.uniformMatrix4fv(u.where, false, value);
      else if (u.kind === gl.FLOAT_VEC4) gl.uniform4fv(u.where, value);
      else if (u.kind === gl.FLOAT_VEC3) gl.uniform3fv(u.where, value);
      else if (u.kind === gl.FLOAT_VEC2) gl.uniform2fv(u.where, value);
      else if (u.kind === gl.FLOAT) gl.uniform1f(u.where, value);
      else gl.uniform1i(u.where, value);
    }
  }
  attribute(place, data, size, stride = 0, offset = 0, each = 0) {
    const gl = this.gl;
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, gl.FLOAT, false, stride, offset);
    gl.vertexAttribDivisor(place, each);
  }
  buffers({ at, normals, tones, count }) {
    const gl = this.gl, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    [[0, at, 3], [1, normals, 3], [2, tones, 1]].forEach(([place, data, size]) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      this.attribute(place, data, size);
    });
    gl.bindVertexArray(null);
    return { array, count };
  }
  /* Pieces of lines, six numbers each: from, to. */
  pieces(data) {
    const gl = this.gl, array = gl.createVertexArray(), buffer = gl.createBuffer();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
    this.attribute(3, data, 3, 24, 0, 1);
    this.attribute(4, data, 3, 24, 12, 1);
    gl.bindVertexArray(null);
    return { array, buffer, count: data.length / 6 };
  }
  again(pieces, data) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, pieces.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.DYNAMIC_DRAW);
    pieces.count = data.length / 6;
  }
  triangles(mesh) {
    this.gl.bindVertexArray(mesh.array);
    this.gl.drawArrays(this.gl.TRIANGLES, 0, mesh.count);
  }
  strokes(pieces) {
    if (!pieces.count) return;
    this.gl.bindVertexArray(pieces.array);
    this.gl.drawArraysInstanced(this.gl.TRIANGLE_STRIP, 0, 4, pieces.count);
  }
  /* What the light sees, of the things that stop it. */
  castShadows(light, things) {
    const gl = this.gl;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.frame);
    gl.viewport(0, 0, this.map, this.map);
    gl.enable(gl.DEPTH_TEST); gl.depthMask(true); gl.depthFunc(gl.LEQUAL); gl.disable(gl.BLEND);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL); gl.polygonOffset(1.5, 2);
    this.use(this.depth, { view: light });
    for (const thing of things) { this.set({ model: thing.model }); this.triangles(thing.mesh); }
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }
  begin() {
    const gl = this.gl;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.depthMask(true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST); gl.depthFunc(gl.LEQUAL);
    gl.enable(gl.BLEND); gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.activeTexture(gl.TEXTURE0); gl.bindTexture(gl.TEXTURE_2D, this.shadows);
  }
}
