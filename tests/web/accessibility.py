"""What a browser finds wrong with a page, for people who see little or use no mouse."""

from __future__ import annotations

#: What a page does wrong for a person who sees little, no colours, or does not use a mouse.
FAULTS = """() => {
  const faults = new Set();
  const say = (fault, element) => faults.add(`${fault}: ${element.outerHTML.slice(0, 120)}`);
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      known.set(colour, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(colour);
  };
  const light = ([r, g, b]) => {
    const part = (of256) => {
      const one = of256 / 255;
      return one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = rgba(getComputedStyle(one).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgba("Canvas");
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element)) continue;
    seen.add(element);
    if (element.closest("svg, script, style, .vh") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [one, other] = [light(rgba(style.color)), light(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) say(`contrast ${contrast.toFixed(2)}`, element);
  }
  const named = (element) => [
    element.innerText, element.getAttribute("aria-label"), element.title, element.value,
    ...[...(element.labels ?? [])].map((label) => label.innerText),
  ].some((name) => name && name.trim());
  const controls = "a[href], button, select, summary, input:not([type=hidden]), [tabindex='0']";
  for (const element of document.querySelectorAll(controls)) {
    if (element.checkVisibility() && !named(element)) say("no name", element);
  }
  for (const element of document.querySelectorAll("img:not([alt])")) say("no name", element);
  const coloured = ".verdict, .colour, .host.bad, .host.warn, table.map td a";
  for (const element of document.querySelectorAll(coloured)) {
    if (!element.textContent.trim()) say("told by colour alone", element);
  }
  return [...faults];
}"""

#: Whether the element that the Tab key has come to shows that it has the focus.
FOCUSED = """() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
}"""
