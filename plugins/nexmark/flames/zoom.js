(function (svg) {
  "use strict";
  var width = svg.viewBox.baseVal.width, margin = 10, inner = width - 2 * margin, char = 6.7;
  var frames = Array.prototype.map.call(svg.querySelectorAll(".f"), function (g) {
    var rect = g.querySelector("rect"), title = g.querySelector("title").textContent;
    var number = function (name) { return parseFloat(rect.getAttribute(name)); };
    return { g: g, rect: rect, text: g.querySelector("text"), name: title.split("\n")[0],
      label: g.getAttribute("data-label"), x: number("x") - margin, w: number("width"), y: number("y") };
  });
  function draw(frame, x, w) {
    frame.g.style.display = w < 0.3 || x >= inner || x + w <= 0 ? "none" : "";
    x = Math.max(x, 0);
    frame.rect.setAttribute("x", margin + x);
    frame.rect.setAttribute("width", Math.min(w, inner - x));
    var room = Math.floor((Math.min(w, inner - x) - 6) / char), label = frame.label;
    if (!frame.text) {
      if (room < 3) return;
      frame.text = document.createElementNS(svg.namespaceURI, "text");
      frame.text.setAttribute("y", frame.y + 12);
      frame.g.appendChild(frame.text);
    }
    frame.text.setAttribute("x", margin + x + 3);
    frame.text.textContent = room < 3 ? "" : label.length > room ? label.slice(0, room - 1) + "…" : label;
  }
  function zoom(to) {
    frames.forEach(function (frame) {
      var above = frame.y < to.y && frame.x <= to.x + 0.01 && frame.x + frame.w >= to.x + to.w - 0.01;
      var inside = frame.y >= to.y && frame.x >= to.x - 0.01 && frame.x + frame.w <= to.x + to.w + 0.01;
      if (above) draw(frame, 0, inner);
      else if (inside) draw(frame, (frame.x - to.x) * inner / to.w, frame.w * inner / to.w);
      else frame.g.style.display = "none";
      frame.g.style.opacity = above ? 0.6 : "";
    });
  }
  function search(words) {
    words = words.trim().toLowerCase();
    frames.forEach(function (frame) {
      var found = words && frame.name.toLowerCase().indexOf(words) >= 0;
      frame.g.classList.toggle("found", Boolean(found));
      frame.g.classList.toggle("dim", Boolean(words && !found));
    });
  }
  if (!frames.length) return;
  frames.forEach(function (frame) {
    frame.g.addEventListener("click", function () { zoom(frame); });
  });
  var xhtml = "http://www.w3.org/1999/xhtml", place = document.createElementNS(svg.namespaceURI, "foreignObject");
  [["x", width - 330], ["y", 8], ["width", 320], ["height", 30]].forEach(function (pair) {
    place.setAttribute(pair[0], pair[1]);
  });
  var box = document.createElementNS(xhtml, "div"), input = document.createElementNS(xhtml, "input");
  var reset = document.createElementNS(xhtml, "button");
  box.setAttribute("class", "controls");
  input.setAttribute("type", "search");
  input.setAttribute("placeholder", "Search frames");
  input.setAttribute("aria-label", "Search frames");
  input.addEventListener("input", function () { search(input.value); });
  reset.setAttribute("type", "button");
  reset.textContent = "Reset zoom";
  reset.addEventListener("click", function () { zoom(frames[0]); });
  input.addEventListener("keydown", function (event) {
    if (event.key === "Enter") {
      event.preventDefault();
      var hits = frames.filter(function (frame) { return frame.g.classList.contains("found"); });
      hits.sort(function (a, b) { return b.w - a.w; });
      if (hits.length) zoom(hits[0]);
    } else if (event.key === "Escape") { input.value = ""; search(""); zoom(frames[0]); }
  });
  box.appendChild(input);
  box.appendChild(reset);
  place.appendChild(box);
  svg.appendChild(place);
})(document.currentScript.closest("svg"));
