// Draws the specifications in the page with Vega-Lite, in the colours of the style.
"use strict";
(() => {
  const LIBRARY = document.querySelector('link[as="script"]').href;
  const NAMES = ["candidate", "baseline", "good", "warn", "bad", "calm", "uncompared", "muted", "band", "text"];

  function colours() {
    const probe = document.createElement("i");
    probe.hidden = true;
    document.body.append(probe);
    const found = {};
    for (const name of NAMES) {
      probe.className = `c-${name}`;
      found[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    return found;
  }

  // Data are left as they are: a build may be called "bad".
  function dyed(value, palette, key) {
    if (key === "values" || key === "domain") return value;
    if (Array.isArray(value)) return value.map((one) => dyed(one, palette, key));
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([name, one]) => [name, dyed(one, palette, name)]),
      );
    }
    const named = (key === "color" || key === "range") && typeof value === "string";
    return named && value in palette ? palette[value] : value;
  }

  function style(palette) {
    const words = { labelColor: palette.text, titleColor: palette.text };
    return {
      background: "transparent",
      font: getComputedStyle(document.body).fontFamily,
      view: { stroke: null },
      axis: {
        ...words,
        gridColor: palette.band,
        domainColor: palette.muted,
        tickColor: palette.muted,
        titleFontWeight: "normal",
      },
      legend: { ...words, symbolSize: 80 },
      line: { strokeWidth: 1.8 },
      text: { fontSize: 10 },
    };
  }

  async function draw() {
    const palette = colours();
    for (const place of document.querySelectorAll("[data-chart]")) {
      const text = place.querySelector("script").textContent;
      const spec = { width: "container", ...dyed(JSON.parse(text), palette, "") };
      spec.autosize = { type: "fit-x", contains: "padding" };
      let target = place.querySelector(".canvas");
      if (!target) {
        target = document.createElement("div");
        target.className = "canvas";
        place.append(target);
      }
      await vegaEmbed(target, spec, {
        mode: "vega-lite",
        renderer: "svg",
        actions: false,
        ast: true, // no eval
        defaultStyle: false,
        tooltip: { disableDefaultStyle: true },
        config: style(palette),
      });
    }
    document.documentElement.dataset.drawn = "yes";
  }

  function begin() {
    draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    new MutationObserver(draw).observe(document.documentElement, {
      attributes: true,
      attributeFilter: ["data-theme"],
    });
  }

  // The words are painted first: to start the library takes longer than to show the page.
  requestAnimationFrame(() => setTimeout(() => {
    const script = document.createElement("script");
    script.addEventListener("load", begin);
    script.src = LIBRARY;
    document.head.append(script);
  }));
})();
