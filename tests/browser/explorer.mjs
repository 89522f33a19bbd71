// The explorer in headless chromium. Usage: node explorer.mjs CHROMIUM PAGE.html SCREENSHOT_FOLDER
// Runs every scenario on a fresh page and writes { name: null or what went wrong } as JSON.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [program, file, folder] = process.argv.slice(2);
const address = pathToFileURL(file).href;
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const scenarios = {};

/** A page that has nothing to say on the console and asks for nothing but itself. */
async function open(hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  page.troubles = [];
  page.on("console", (message) => page.troubles.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => page.troubles.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== address) page.troubles.push(`request: ${request.url()}`);
  });
  await page.goto(`${address}#${hash}`);
  return page;
}

const text = async (page, id) => (await page.locator(`#${id}`).textContent()).replaceAll("−", "-").trim();
const valuesOf = async (page) => [Number(await page.inputValue("#v0")), Number(await page.inputValue("#v1"))];
/** The parts of the address, once this one is as expected: it follows with a delay. */
const hashOf = async (page, name, expected) => {
  let parts;
  await until(async () => {
    parts = new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
    return expected.test(parts.get(name) ?? "");
  }, `${name} in the address is not ${expected}`);
  return parts;
};
/** Wait for something that must become true, however busy the machine is. */
const until = async (check, otherwise) => {
  const end = Date.now() + 20_000;
  while (!(await check())) {
    assert.ok(Date.now() < end, otherwise);
    await new Promise((done) => setTimeout(done, 50));
  }
};
const frames = (page, n = 2) =>
  page.evaluate((count) => new Promise((done) => {
    const next = (left) => (left ? requestAnimationFrame(() => next(left - 1)) : done());
    next(count);
  }), n);
const centre = async (page, selector) => {
  const box = await page.locator(selector).first().boundingBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
};
/** Where on the screen the deterministic policy with this name has its mark. */
const mark = async (page, name) => {
  const box = await page.locator("#plane .vertex", { hasText: name }).first().boundingBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
};
const everything = (page) =>
  page.evaluate(() => ({
    texts: [...document.querySelectorAll("#values-card, #policy-card, #runs, #run-said")].map((e) => e.textContent),
    inputs: [...document.querySelectorAll("input, select")].map((e) => [e.id, e.type, e.value, e.checked]),
    trace: document.querySelector("#plane .trace").innerHTML,
    ground: document.querySelector("#plane .edge").innerHTML,
    map: document.querySelector("#plane .map").innerHTML,
    handle: document.querySelector(".v-handle").getAttribute("transform"),
  }));

scenarios.opens = async () => {
  const page = await open("v=18,-6");
  assert.equal(await text(page, "verdict-word"), "Not achievable.");
  assert.match(await text(page, "verdict-why"), /more in s0 .*greedy.* less in s1 .*worst/);
  assert.deepEqual(
    await Promise.all(["rho", "l2", "distance", "lower", "upper"].map((id) => text(page, id))),
    ["2.600", "1.924", "11.684", "1.368", "26.000"],
  );
  const rows = await page.locator("#values-table tr").allTextContents();
  assert.deepEqual(rows.map((row) => row.replaceAll("−", "-")), ["s018.00010.00010.00017.000", "s1-6.00020.0009.00020.000"]);
  const bars = await page.locator("#bars tbody tr").allTextContents();
  assert.equal(bars.length, 4);
  const facts = await page.locator(".facts").allTextContents();
  assert.match(facts[0], /η ∞/);
  assert.match(facts[1], /η −∞/);
  assert.equal(await page.locator("#plane .arrow").count(), 2);
  return page;
};

scenarios.drag = async () => {
  const page = await open("v=18,-6");
  const from = await centre(page, ".v-handle .v");
  const to = await mark(page, "stay, stay");
  await page.mouse.move(...from);
  await page.mouse.down();
  for (let k = 1; k <= 8; k++) {
    await page.mouse.move(from[0] + ((to[0] - from[0]) * k) / 8, from[1] + ((to[1] - from[1]) * k) / 8);
    await frames(page, 1);
    if (k === 4) {
      const [x, y] = await valuesOf(page); // it follows while the button is down
      assert.ok(Math.abs(x - 14) < 0.5 && Math.abs(y - 7) < 0.5, `half way, V is ${x}, ${y}`);
    }
  }
  await page.mouse.up();
  await frames(page);
  const [x, y] = await valuesOf(page);
  assert.ok(Math.abs(x - 10) < 0.1 && Math.abs(y - 20) < 0.1, `V is ${x}, ${y}, not 10, 20`);
  const near = (a, b) => Math.abs(a - x) < 1e-4 && Math.abs(b - y) < 1e-4;
  await until(
    async () => near(...new URLSearchParams(await page.evaluate(() => location.hash.slice(1))).get("v").split(",")),
    "the address does not follow V",
  );
  await page.mouse.move(from[0], from[1]); // let go: it stays
  await frames(page);
  assert.deepEqual(await valuesOf(page), [x, y]);
  return page;
};

scenarios.achievable = async () => {
  const page = await open("v=12,18");
  assert.equal(await text(page, "verdict-word"), "Achievable.");
  assert.equal(await text(page, "rho"), "0.000");
  assert.equal(await page.locator(".v-handle .v.out").count(), 0);
  assert.equal(await page.locator("#plane .state").textContent(), "achievable");
  await page.fill("#v0", "4");
  await frames(page);
  assert.equal(await page.locator(".v-handle .v.out").count(), 1);
  assert.equal(await page.locator("#plane .state").textContent(), "not achievable");
  await page.fill("#v0", "x".repeat(0));
  assert.match(await text(page, "v-problem"), /^V\(s0\) must be a number/);
  await page.fill("#v0", "400"); // beyond what is shown: the view follows
  await frames(page);
  assert.equal(await text(page, "v-problem"), "");
  const box = await page.locator("#plane .paper").boundingBox();
  const [x] = await centre(page, ".v-handle .v");
  assert.ok(x > box.x && x < box.x + box.width);
  return page;
};

scenarios.keyboard = async () => {
  const page = await open("v=18,-6");
  for (let k = 0; k < 12; k++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(() => document.activeElement.classList.contains("v-handle"))) break;
  }
  assert.ok(await page.evaluate(() => document.activeElement.classList.contains("v-handle")), "Tab does not reach V");
  const before = await valuesOf(page);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowUp");
  await frames(page);
  const small = await valuesOf(page);
  assert.ok(small[0] < before[0] && small[1] > before[1]);
  const step = before[0] - small[0];
  await page.keyboard.press("Shift+ArrowLeft");
  await frames(page);
  const large = await valuesOf(page);
  assert.ok(Math.abs(small[0] - large[0] - 10 * step) < step, `${small} to ${large}, a step being ${step}`);
  assert.match(await page.getAttribute(".v-handle", "aria-valuetext"), /V of s0 .* Not achievable/);
  await page.evaluate(() => { // keys that come faster than frames
    const key = () => new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true, cancelable: true });
    for (let k = 0; k < 5; k++) document.activeElement.dispatchEvent(key());
  });
  await frames(page);
  const [, high] = await valuesOf(page);
  assert.ok(Math.abs(high - large[1] - 5 * step) < step / 2, `five steps of ${step} lead from ${large[1]} to ${high}`);
  await page.focus("input[name=run][value=ipe]");
  await page.keyboard.press("ArrowLeft");
  await frames(page);
  assert.match(await text(page, "run-said"), /^annealed ε/);
  await page.focus("#step");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await frames(page);
  assert.match(await text(page, "run-said"), /step 2 of 500/);
  return page;
};

scenarios.touch = async () => {
  const page = await open("v=18,-6", { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
  const session = await page.context().newCDPSession(page);
  const touch = (type, x, y) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x, y }] });
  const slide = async (from, to) => {
    await touch("touchStart", ...from);
    for (let k = 1; k <= 6; k++) {
      await touch("touchMove", from[0] + ((to[0] - from[0]) * k) / 6, from[1] + ((to[1] - from[1]) * k) / 6);
      await frames(page, 1);
    }
    await touch("touchEnd");
    await frames(page);
  };
  const to = await mark(page, "stay, stay");
  await slide(await centre(page, ".v-handle .v"), to);
  const held = await valuesOf(page);
  assert.ok(Math.abs(held[0] - 10) < 0.7 && Math.abs(held[1] - 20) < 0.7, `V is ${held}, not 10, 20`);
  assert.equal(await page.evaluate(() => scrollY), 0);
  const box = await page.locator("#plane .paper").boundingBox();
  const corner = [box.x + box.width - 30, box.y + box.height - 40];
  await slide(corner, [corner[0], corner[1] - 200]); // beside V, a finger scrolls the page
  assert.deepEqual(await valuesOf(page), held);
  await page.evaluate(() => scrollTo(0, 0));
  await page.touchscreen.tap(...corner); // and a tap brings V there
  await frames(page);
  const tapped = await valuesOf(page);
  assert.ok(tapped[0] > 14 && tapped[1] < 2, `V is ${tapped}`);
  return page;
};

scenarios.play = async () => {
  const page = await open();
  await page.fill("#speed", "8");
  await page.click("#play");
  await page.waitForFunction(() => /step (\d+) of/.exec(document.querySelector("#run-said").textContent)?.[1] > 20);
  await page.click("#play");
  await frames(page);
  const paused = await text(page, "run-said");
  await page.waitForTimeout(200);
  assert.equal(await text(page, "run-said"), paused);
  const steps = Number(/step (\d+) of 500/.exec(paused)[1]);
  const points = (name) => page.locator(`#plane .trace-dots.${name}`).getAttribute("d").then((d) => d.split("M").length - 1);
  assert.equal(await points("estimates"), steps + 1);
  assert.equal(await points("values"), steps + 1);
  await page.click("#step");
  await frames(page);
  assert.equal(await points("estimates"), steps + 2);
  await page.click("#finish");
  await frames(page);
  assert.match(await text(page, "run-said"), /step 500 of 500/);
  assert.ok(await page.isDisabled("#play"));
  const shown = new Set();
  for (const name of ["epsilon-greedy", "linear", "ipe", "epsilon-ipe", "tau-ipe"]) {
    await page.check(`input[name=run][value=${name}]`);
    await frames(page);
    shown.add(await page.locator("#plane .trace-line.estimates").getAttribute("d"));
  }
  assert.equal(shown.size, 4); // with two actions, tau-IPE is epsilon-IPE
  await hashOf(page, "done", /^500$/);
  await page.fill("#alphaPi", "0.5"); // the same run, as it would have been
  await frames(page);
  assert.match(await text(page, "run-said"), /step 500 of 500/);
  assert.ok(!shown.has(await page.locator("#plane .trace-line.estimates").getAttribute("d")));
  await page.fill("#alphaQ", "3");
  assert.equal(await text(page, "settings-problem"), "α_Q must be a number from 0 to 1.");
  await page.check("#follow");
  await frames(page);
  const [x, y] = await valuesOf(page);
  assert.ok(Math.abs(x - 17) < 8 && Math.abs(y - 20) < 8 && x !== 0.8, `V does not follow: ${x}, ${y}`);
  await page.click("#reset");
  await frames(page);
  assert.match(await text(page, "run-said"), /before step 1/);
  assert.equal(await page.locator("#plane .trace-line").count(), 0);
  return page;
};

scenarios.map = async () => {
  const page = await open();
  await page.check("input[name=map][value=ipe]");
  await frames(page);
  const count = (selector) => page.locator(selector).getAttribute("d").then((d) => d.split("M").length - 1);
  assert.equal(await count("#plane .way-dot.inside"), 18); // as in the paper's Figure 3
  assert.equal(await count("#plane .way-dot.outside"), 177);
  const ipe = await page.locator("#plane .way.outside").getAttribute("d");
  await page.check("input[name=map][value=greedy]");
  await frames(page);
  assert.notEqual(await page.locator("#plane .way.outside").getAttribute("d"), ipe);
  await hashOf(page, "map", /^greedy$/);
  await page.check("input[name=map][value=off]");
  await frames(page);
  assert.equal(await page.locator("#plane .map *").count(), 0);
  return page;
};

scenarios.edit = async () => {
  const page = await open();
  const edge = () => page.locator("#plane .boundary").getAttribute("d");
  const whole = await edge();
  await page.fill("[data-field=gamma]", "1.5");
  await frames(page);
  assert.match(await text(page, "mdp-problem"), /^gamma must lie in \[0, 1\), found 1.5\./);
  assert.equal(await page.getAttribute("[data-field=gamma]", "aria-invalid"), "true");
  assert.equal(await edge(), whole);
  await page.fill("[data-field=gamma]", "0.8");
  await frames(page);
  assert.equal(await text(page, "mdp-problem"), "");
  assert.notEqual(await edge(), whole);
  await page.fill("[data-field=gamma]", "");
  assert.match(await text(page, "mdp-problem"), /^gamma must lie in \[0, 1\), found none\./);
  await page.fill("[data-field=gamma]", "0.8");
  await page.fill("[data-field='actions.0.1.reward']", "");
  assert.match(await text(page, "mdp-problem"), /^r\(s0, switch\) must be a number/);
  await page.fill("[data-field='actions.0.1.reward']", "-2");
  await page.fill("[data-field='actions.0.0.next.0']", "0.7");
  assert.equal(await page.inputValue("[data-field='actions.0.0.next.1']"), "0.3");
  await page.fill("[data-field='actions.0.0.next.0']", "-1");
  assert.match(await text(page, "mdp-problem"), /^P\(s0 \| s0, stay\) must lie in \[0, 1\], found -1/);
  await page.fill("[data-field='actions.0.0.next.0']", "0.6");
  await frames(page);
  assert.equal(await page.locator("#mdp option:checked").textContent(), "Switch-Stay (edited)");
  await page.click("#restore");
  await frames(page);
  assert.equal(await page.locator("#mdp option:checked").textContent(), "Switch-Stay");
  assert.equal(await page.inputValue("[data-field=gamma]"), "0.9");
  await page.selectOption("#mdp", { label: "Dadashi et al., Figure 2c" });
  await frames(page);
  assert.equal(await page.locator("#bars tbody tr").count(), 6);
  await hashOf(page, "mdp", /^dadashi-3$/);
  return page;
};

scenarios.address = async () => {
  const page = await open();
  await page.fill("[data-field=gamma]", "0.85");
  await page.fill("[data-field='actions.1.0.next.1']", "0.75");
  await page.check("input[name=map][value=ipe]");
  await page.check("input[name=run][value=linear]");
  await page.fill("#seed", "3");
  await page.fill("#alphaQ", "0.25");
  for (let k = 0; k < 5; k++) await page.click("#step");
  await page.fill("#v0", "3.25");
  await page.fill("#v1", "6.5");
  await page.click("#zoom-in");
  await page.click("h1");
  await frames(page);
  await hashOf(page, "zoom", /^1,3.25,6.5$/);
  const before = await everything(page);
  await page.reload();
  await frames(page);
  const after = await everything(page);
  assert.deepEqual(after, before);
  const other = await open(new URL(page.url()).hash.slice(1));
  await frames(other);
  assert.deepEqual(await everything(other), before);
  assert.deepEqual(other.troubles, []);
  await other.context().close();
  await page.fill("#v0", "4"); // about to be written to the address
  await page.evaluate(() => (location.hash = "mdp=dadashi-1&v=1,2"));
  await until(async () => String(await valuesOf(page)) === "1,2", "the new address is not read");
  assert.equal(await page.locator("#mdp option:checked").textContent(), "Dadashi et al., Figure 2a");
  return page;
};

scenarios.wrongAddress = async () => {
  const page = await open("mdp=nothing&v=1&map=x&alphaQ=7&done=-3&zoom=a&run=b&speed=99");
  const said = await text(page, "address-problem");
  for (const name of ["mdp", "v", "map", "alphaQ", "done", "zoom", "run", "speed"]) assert.match(said, new RegExp(`\\b${name} `));
  assert.equal(await page.locator("#mdp option:checked").textContent(), "Switch-Stay");
  const bad = encodeURIComponent(JSON.stringify({ name: "<img src=x>", gamma: 2 }));
  await page.evaluate((hash) => (location.hash = hash), `mdp=${bad}`);
  await until(async () => /mdp is not an MDP: gamma must lie in/.test(await text(page, "address-problem")), "gamma is not named");
  await page.evaluate(() => (location.hash = "v=2,3"));
  await until(() => page.locator("#address-problem").isHidden(), "the problem stays");
  assert.deepEqual(await valuesOf(page), [2, 3]);
  return page;
};

scenarios.names = async () => {
  const hostile = {
    name: "<b>x</b>", gamma: 0.5, states: ["<i>a</i>", "\"b\""], start: [0.5, 0.5],
    actions: [[{ name: "<script>", reward: 1, next: [0, 1, 0], rewards: null }],
      [{ name: "&amp;", reward: 0, next: [0.5, 0, 0.5], rewards: [1, 0, -1] }]],
  };
  const page = await open(`mdp=${encodeURIComponent(JSON.stringify(hostile))}&done=30`);
  assert.equal(await page.locator("#bars tbody th").first().textContent(), "<script> ▲");
  assert.equal(await page.locator("#bars i, #bars b, #bars script").count(), 0);
  assert.match(await text(page, "run-said"), /step 30 of/);
  assert.equal(await page.locator(".mdp thead th").last().textContent(), "ends");
  assert.equal(await page.locator("#plane .polytope").first().getAttribute("d"), "M0 0"); // one policy: a point
  return page;
};

scenarios.accessible = async () => {
  const page = await open("done=20&map=greedy");
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input, select, [role=slider]")]
      .filter((e) => !(e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim() || e.textContent.trim()))
      .map((e) => e.outerHTML),
  );
  assert.deepEqual(nameless, []);
  const ids = await page.evaluate(() => [...document.querySelectorAll("[id]")].map((e) => e.id));
  assert.equal(new Set(ids).size, ids.length);
  const heads = await page.evaluate(() => [...document.querySelectorAll("h1, h2")].map((e) => e.tagName));
  assert.deepEqual(heads, ["H1", "H2", "H2", "H2", "H2"]);
  assert.equal(await page.getAttribute("html", "lang"), "en");
  return page;
};

/** The contrast of every text with what is behind it, by the formula of WCAG 2; disabled controls are exempt there. */
const contrasts = (page) =>
  page.evaluate(() => {
    const parse = (colour) => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    const light = ([r, g, b]) => {
      const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = (element) => {
      for (let e = element; e; e = e.parentElement) {
        const colour = parse(getComputedStyle(e).backgroundColor);
        if (colour.length < 4 || colour[3] === 1) return colour;
      }
      return [255, 255, 255];
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest(":disabled, script, .quiet, title")) continue;
      const style = getComputedStyle(element);
      const [a, b] = [light(parse(element.closest("svg") ? style.fill : style.color)), light(behind(element))];
      found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
    }
    return found;
  });

for (const colorScheme of ["light", "dark"]) {
  scenarios[colorScheme] = async () => {
    const page = await open("v=18,-6&done=120&run=ipe", { colorScheme });
    assert.equal(await page.getAttribute("html", "data-theme"), colorScheme);
    const all = await contrasts(page);
    assert.ok(all.length > 60);
    assert.deepEqual(all.filter(([ratio]) => ratio < 4.5), []);
    await page.screenshot({ path: `${folder}/explorer-${colorScheme}.png`, fullPage: true });
    await page.click("#theme");
    assert.notEqual(await page.getAttribute("html", "data-theme"), colorScheme);
    await page.reload();
    assert.notEqual(await page.getAttribute("html", "data-theme"), colorScheme); // it is remembered
    return page;
  };
}

scenarios.narrow = async () => {
  const page = await open("v=18,-6&done=50&mdp=dadashi-5", { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  const wide = await page.evaluate(() =>
    [...document.querySelectorAll("body *")]
      .filter((e) => !e.closest("svg, .scroll, .quiet, script") && e.getBoundingClientRect().right > innerWidth + 0.5)
      .map((e) => e.outerHTML.slice(0, 80)),
  );
  assert.deepEqual(wide, []);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
  const small = await page.evaluate(() =>
    [...document.querySelectorAll("button, select, input[type=number]")]
      .filter((e) => e.getBoundingClientRect().height < 40)
      .map((e) => e.id),
  );
  assert.deepEqual(small, []);
  await page.screenshot({ path: `${folder}/explorer-narrow.png`, fullPage: true });
  return page;
};

/** The boxes on the screen of what some selectors find; of a heading, the box of its text. */
const boxes = (page, selector) =>
  page.evaluate((found) => [...document.querySelectorAll(found)].map((element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const { left, top, right, bottom } = (element.tagName === "H1" ? range : element).getBoundingClientRect();
    return { left, top, right, bottom, text: element.textContent.trim() };
  }), selector);
const crossing = (some, others) =>
  some.flatMap((a) => others
    .filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
    .map((b) => `${a.text} and ${b.text}`));
const PHONE = { viewport: { width: 320, height: 640 } };

scenarios.phone = async () => {
  const page = await open("v=18,-6", PHONE);
  const button = await boxes(page, "#theme");
  assert.deepEqual(crossing(await boxes(page, "h1, header p"), button), []);
  for (const v of ["18,-6", "12,18", "-5,20", "20,20", "0,0", "5,-6"]) {
    await page.evaluate((hash) => (location.hash = hash), `v=${v}`);
    await until(async () => String(await valuesOf(page)) === v, "the new address is not read");
    await frames(page);
    assert.deepEqual(crossing(await boxes(page, "#plane .state"), await boxes(page, "#plane .name")), [], `V is ${v}`);
  }
  assert.match(await text(page, "policy-help"), /Matched ε is the ε .*η says how π follows/s);
  await page.screenshot({ path: `${folder}/explorer-phone.png`, fullPage: true });
  return page;
};

scenarios.million = async () => {
  for (const v of ["1000000,-1000000", "-123456,123456", "-1e12,1e12"]) {
    const page = await open(`v=${v}`, PHONE);
    const [plane] = await boxes(page, "#plane");
    const labels = await boxes(page, "#plane .tick");
    const cut = labels.filter((box) => box.left < plane.left || box.right > plane.right);
    assert.deepEqual(cut, [], `V is ${v}`);
    const titles = await boxes(page, "#plane .title");
    assert.deepEqual(crossing(titles, labels), [], `V is ${v}`);
    assert.ok(new Set(labels.map(({ text: label }) => label)).size > 2, "ticks are told apart");
    const over = await page.evaluate(() =>
      [...document.querySelectorAll("#values-card *, #policy-card *")]
        .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline" && !e.matches(".quiet, #gauge, input"))
        .map((e) => e.outerHTML.slice(0, 80)),
    );
    assert.deepEqual(over, [], `V is ${v}`);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
    if (v.startsWith("-1e")) return page;
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  }
};

scenarios.print = async () => {
  const page = await open("v=18,-6&done=50", { colorScheme: "dark" });
  await page.emulateMedia({ media: "print" });
  const seen = (selector) => page.locator(selector).first().isVisible();
  for (const gone of ["#theme", "#play", "#fit", "footer"]) assert.ok(!(await seen(gone)), `${gone} is printed`);
  for (const there of ["#plane svg", "#verdict", ".numbers", "#bars", "#runs"]) assert.ok(await seen(there), there);
  const ink = await page.evaluate(() => getComputedStyle(document.body).color);
  assert.equal(ink, "rgb(29, 33, 40)"); // dark on white, whatever the screen shows
  const paper = await page.pdf({ format: "A4" });
  const pages = paper.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  assert.ok(pages <= 3, `${pages} pages`);
  return page;
};

scenarios.steady = async () => {
  const page = await open("v=18,-6");
  const shifts = () =>
    page.evaluate(() => new Promise((done) => {
      new PerformanceObserver((list, observer) => {
        observer.disconnect();
        done(list.getEntries().reduce((total, entry) => total + entry.value, 0));
      }).observe({ type: "layout-shift", buffered: true });
      setTimeout(() => done(0), 300);
    }));
  assert.equal(await shifts(), 0, "the layout moves while the page opens");
  const from = await centre(page, ".v-handle .v");
  await page.mouse.move(...from);
  await page.mouse.down();
  for (let k = 0; k < 20; k++) {
    await page.mouse.move(from[0] - 15 * k, from[1] - 20 * k);
    await frames(page, 1);
  }
  await page.mouse.up();
  await page.click("#play");
  await page.waitForTimeout(600);
  assert.ok((await shifts()) < 0.02, `the layout moves by ${await shifts()}`);
  return page;
};

/** Milliseconds to the first paint from disk: the best of several visits, since other programs slow some of them down. */
async function firstPaint() {
  let best = Infinity;
  for (let visit = 0; visit < 6 && best > 500; visit++) {
    const page = await open();
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
    best = Math.min(best, await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    await page.context().close();
  }
  return best;
}

const results = {};
for (const [name, scenario] of Object.entries(scenarios)) {
  try {
    const page = await scenario();
    assert.deepEqual(page.troubles, []);
    await page.context().close();
    results[name] = null;
  } catch (error) {
    results[name] = error.stack ?? String(error);
  }
}
const paint = await firstPaint();
await browser.close();
process.stdout.write(JSON.stringify({ results, paint }));
