/* Light and dark: as the system has it, until the button says otherwise. */

import { byId, say } from "../../../pages/web/dom.js";

const KEY = "ipe-explorer-theme";

export function makeTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = remembered();
  const draw = () => {
    const dark = chosen ? chosen === "dark" : system.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    say(byId("theme"), dark ? "Light" : "Dark");
  };
  byId("theme").addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // not every browser remembers for a page on disk: then it is for this visit
    }
    draw();
  });
  system.addEventListener("change", draw);
  draw();
}

function remembered() {
  try {
    const word = localStorage.getItem(KEY);
    return word === "dark" || word === "light" ? word : null;
  } catch {
    return null;
  }
}
