// What is measured inside a page, as functions that playwright sends there: they use nothing from outside themselves.

/** The least contrast of any text with what is behind it (WCAG), and whose it is. */
export function leastContrast() {
  const channels = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const part = [r, g, b].map((value) => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let least = { ratio: Infinity, words: "" };
  const walker = document.createTreeWalker(document.getElementById("report"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const words = walker.currentNode.textContent.trim();
    if (!words || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const front = luminance(channels(element instanceof SVGElement ? style.fill : style.color));
    const back = luminance(behind(element));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (ratio < least.ratio) least = { ratio, words };
  }
  return least;
}

/** The controls that a screen reader could not name. */
export function unnamedControls() {
  const name = (control) =>
    control.getAttribute("aria-label") || control.closest("label")?.textContent.trim() || control.textContent.trim();
  return [...document.querySelectorAll("input, select, button, [tabindex]")].filter((one) => !name(one)).map((one) => one.outerHTML);
}

/** Whether the page can be moved sideways, and what sticks out. */
export function sideways() {
  const wide = document.documentElement.scrollWidth;
  const out = [...document.querySelectorAll("body *")].filter(
    (one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, .unseen"),
  );
  return { scroll: wide - innerWidth, out: out.map((one) => `${one.tagName}.${one.className}`) };
}

export const names = () => [...document.querySelectorAll("#ranking tbody td.name")].map((cell) => cell.textContent);
export const column = (label) =>
  [...document.querySelectorAll(`#ranking tbody td[data-label="${label}"]`)].map((cell) => cell.textContent);
export const paths = (kind) => [...document.querySelectorAll(`#curves .chart path.${kind}`)].map((path) => path.getAttribute("d"));
export const legend = () => [...document.querySelectorAll("#curves .legend tr")].map((row) => row.textContent);
