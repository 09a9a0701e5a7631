/* Numbers: what comes packed, vectors, matrices (column by column, as WebGL wants them). */
function coded(text, Kind) {
  return new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}
function unpacked(m) { /* sixteen-bit integers, the largest means nan */
  return Float64Array.from(coded(m.data, Uint16Array), (v) => (v === 65535 ? NaN : m.low + m.step * v));
}
const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scaled = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const norm = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => scaled(a, 1 / (norm(a) || 1));
const mixed = (a, b, s) => [a[0] + s * (b[0] - a[0]), a[1] + s * (b[1] - a[1]), a[2] + s * (b[2] - a[2])];
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

function product(a, b) {
  const out = new Float32Array(16);
  for (let c = 0; c < 4; c++) for (let r = 0; r < 4; r++) {
    let s = 0;
    for (let k = 0; k < 4; k++) s += a[4 * k + r] * b[4 * c + k];
    out[4 * c + r] = s;
  }
  return out;
}
/* A camera at eye that looks along -back; right, up and back are its axes. */
function lookFrom(eye, right, up, back) {
  return new Float32Array([
    right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
    -dot(right, eye), -dot(up, eye), -dot(back, eye), 1]);
}
function perspective(tx, ty, near, far) {
  return new Float32Array([1 / tx, 0, 0, 0, 0, 1 / ty, 0, 0, 0, 0, (far + near) / (near - far), -1,
    0, 0, 2 * far * near / (near - far), 0]);
}
function orthographic(x, y, near, far) {
  return new Float32Array([1 / x, 0, 0, 0, 0, 1 / y, 0, 0, 0, 0, 2 / (near - far), 0, 0, 0, (far + near) / (near - far), 1]);
}
/* The matrix of a pose: position, unit quaternion with its scalar first. */
function placed(r, p) {
  const [w, x, y, z] = p;
  return new Float32Array([
    1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0,
    2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0,
    2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0, r[0], r[1], r[2], 1]);
}
/* The matrix that puts the third axis along d, stretched by a across and by h along. */
function along(r, d, a, h) {
  const k = unit(d), i = unit(cross(Math.abs(k[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], k)), j = cross(k, i);
  return new Float32Array([...scaled(i, a), 0, ...scaled(j, a), 0, ...scaled(k, h), 0, ...r, 1]);
}
/* A function of the frame, which may lie between two, that gives position and rotation. */
function motion(m) {
  const r = coded(m.position, Float32Array), p = unpacked(m.rotation), rows = r.length / 3, turns = p.length / 4;
  const row = (x, n, k) => x.subarray(n * k, n * k + n);
  return {
    moves: rows > 1 || turns > 1,
    at(frame) {
      const k = Math.floor(frame), s = frame - k;
      const i = Math.min(k, rows - 1), j = Math.min(k + 1, rows - 1), a = Math.min(k, turns - 1),
        b = Math.min(k + 1, turns - 1);
      const from = row(p, 4, a), to = row(p, 4, b);
      const sign = from[0] * to[0] + from[1] * to[1] + from[2] * to[2] + from[3] * to[3] < 0 ? -1 : 1;
      const q = [0, 1, 2, 3].map((n) => (1 - s) * from[n] + s * sign * to[n]);
      const length = Math.hypot(...q) || 1;
      return { r: mixed(row(r, 3, i), row(r, 3, j), s), p: q.map((v) => v / length) };
    },
  };
}
/* The last row of t, which grows, that is not after the time; the first, where all are. */
function rowAt(t, time) {
  let a = 0, b = t.length - 1;
  while (a < b) {
    const mid = (a + b + 1) >> 1;
    if (t[mid] <= time) a = mid; else b = mid - 1;
  }
  return a;
}
/* 1, 2 or 5 times a power of ten, not below x. */
function round125(x) {
  const ten = 10 ** Math.floor(Math.log10(x)), lead = x / ten;
  return ten * (lead <= 1.0001 ? 1 : lead <= 2.0001 ? 2 : lead <= 5.0001 ? 5 : 10);
}
function shown(x, digits = 3) { /* a number as one reads it */
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const text = Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(Math.max(0, digits - 1))
    : String(Number(x.toPrecision(digits)));
  return text.replace("e-", "e−").replace("e+", "e").replace(/^-/, "−");
}
