/* Opened from the disk, a page may not start workers, and the theme hides its search box: here a frame does a worker's work. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      frame.onload = () => {
        const inside = frame.contentWindow, script = inside.document.createElement("script");
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inside.importScripts = () => {};
        this.deliver = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
        script.onload = () => { this.waiting.forEach(this.deliver); this.waiting = null; };
        script.src = url;
        inside.document.head.appendChild(script);
      };
      document.documentElement.appendChild(frame);
    }
    postMessage(data) { this.waiting ? this.waiting.push(data) : this.deliver(data); }
    terminate() {}
  };
}
