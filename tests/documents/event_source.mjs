// EventSource for examples that are for a browser: Node 20 has none. A path is one of the document's service.
globalThis.EventSource ??= class extends EventTarget {
  constructor(url) {
    super();
    this.#read(new URL(url, process.env.ROLLTOP_URL));
  }

  async #read(url) {
    let rest = "";
    for await (const piece of (await fetch(url)).body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + piece).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const [, type] = /^event: (.*)$/m.exec(event) ?? [];
        const [, data] = /^data: (.*)$/m.exec(event) ?? [];
        if (type) this.dispatchEvent(new MessageEvent(type, { data }));
      }
    }
  }
};
