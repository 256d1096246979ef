// The theme of Airflow, where the page is shown inside of it.
"use strict";
(() => {
  if (window.parent === window) return;
  let outer;
  try {
    outer = window.parent.document.documentElement;
  } catch {
    return; // another origin
  }
  const follow = () => {
    const dark = outer.classList.contains("dark") || outer.dataset.theme === "dark";
    const light = outer.classList.contains("light") || outer.dataset.theme === "light";
    if (dark || light) document.documentElement.dataset.theme = dark ? "dark" : "light";
  };
  follow();
  new MutationObserver(follow).observe(outer, { attributes: true });
})();
