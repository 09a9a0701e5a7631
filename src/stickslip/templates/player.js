/* A player: Plotly draws, this moves the frames. Drawn when it comes into view, so that a long page opens at once. */
const NAN = 65535;
/* Frames come as sixteen-bit integers: a function of the frame that gives its numbers. */
function unpacked(m) {
  const bytes = Uint8Array.from(atob(m.data), (c) => c.charCodeAt(0)), whole = new Uint16Array(bytes.buffer);
  return (k) => Array.from(whole.subarray(k * m.points, (k + 1) * m.points), (v) => (v === NAN ? null : m.low + m.step * v));
}
function player(root) {
  const run = JSON.parse(root.querySelector("script").textContent);
  const plot = root.querySelector(".plot"), button = root.querySelector(".controls button");
  const slider = root.querySelector("input"), clock = root.querySelector(".clock");
  const last = run.t.length - 1, span = run.t[last] - run.t[0];
  const digits = Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(span))));
  let drawn = null, busy = false, wanted = 0, playing = false, began = 0;
  slider.max = last;
  if (run.events.length) { /* ticks where something happened */
    const ticks = document.createElement("datalist");
    ticks.id = "events-" + root.dataset.name;
    for (const e of run.events) {
      const tick = document.createElement("option");
      tick.value = e.frame;
      tick.label = e.what;
      ticks.appendChild(tick);
    }
    root.appendChild(ticks);
    slider.setAttribute("list", ticks.id);
  }
  const happened = (k) => run.events.filter((e) => e.frame === k).map((e) => e.what).join(", ");
  for (const m of run.moving) for (const axis of ["x", "y", "z"]) if (m[axis]) m[axis] = unpacked(m[axis]);

  function draw() {
    if (!drawn) {
      const config = { responsive: true, displayModeBar: false }; /* its buttons speak of a network */
      const layout = plot.clientWidth < 640 ? run.narrow : run.layout;
      drawn = Plotly.newPlot(plot, run.data, layout, config).then(() => { root.dataset.drawn = "yes"; });
    }
    return drawn;
  }
  function frame(k) {
    const data = run.moving.map((m) => {
      const out = {};
      for (const axis of ["x", "y", "z"]) if (m[axis]) out[axis] = m[axis](k);
      return out;
    });
    return { data: data, traces: run.moving.map((m) => m.trace) };
  }
  /* The newest wish is drawn; wishes that come while a frame is being drawn replace each other. */
  async function show(k) {
    wanted = k;
    slider.value = k;
    clock.textContent = "t = " + run.t[k].toFixed(digits) + " s" + (happened(k) ? ", " + happened(k) : "");
    if (busy) return;
    busy = true;
    try {
      await draw();
      let done = -1;
      while (done !== wanted) {
        done = wanted;
        await Plotly.animate(plot, frame(done),
          { mode: "immediate", transition: { duration: 0 }, frame: { duration: 0, redraw: true } });
        root.dataset.frame = done;
      }
    } catch (error) {
      root.dataset.error = String(error);
      throw error;
    } finally { busy = false; }
  }
  function at(time) { /* the frame at a time of the run */
    let low = 0, high = last;
    while (low < high) { const mid = (low + high + 1) >> 1; if (run.t[mid] <= time) low = mid; else high = mid - 1; }
    return low;
  }
  function tick(now) {
    if (!playing) return;
    const part = (now - began) / (1000 * run.duration);
    if (part >= 1) { show(last); stop(); return; }
    if (!busy) show(at(run.t[0] + part * span));
    requestAnimationFrame(tick);
  }
  function stop() { playing = false; button.textContent = "Play"; }
  function start() {
    const from = Number(slider.value) === last ? 0 : Number(slider.value);
    playing = true;
    button.textContent = "Pause";
    began = performance.now() - 1000 * run.duration * (run.t[from] - run.t[0]) / span;
    requestAnimationFrame(tick);
  }
  button.addEventListener("click", () => (playing ? stop() : start()));
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  new IntersectionObserver((seen, observer) => {
    if (seen.some((s) => s.isIntersecting)) { observer.disconnect(); show(0); }
  }).observe(root);
}
document.querySelectorAll(".player").forEach(player);
