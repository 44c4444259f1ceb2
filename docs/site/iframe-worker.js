// Browsers start no workers for pages that are opened from disk. There the theme's search, which asks
// for one, runs in a hidden frame instead.
(() => {
  const load = (page, address) =>
    new Promise((done, failed) => {
      const script = page.createElement("script");
      Object.assign(script, { src: address, onload: done, onerror: failed });
      page.body.append(script);
    });

  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const page = this.inside.document;
      page.open();
      page.write("<!doctype html><title>search</title><body>");
      page.close();
      // What a script may call of a worker.
      this.inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = async (...addresses) => {
        for (const each of addresses) await load(page, each);
      };
      this.ready = load(page, address);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  }

  window.IFrameWorker = FrameWorker; // the name by which the theme knows that it is in a frame
  if (location.protocol === "file:") window.Worker = FrameWorker;
})();
