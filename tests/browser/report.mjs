// Opens a report and uses it as a reader would. Prints what it saw as JSON; tests/test_report_browser.py judges it.

import { launch, open } from "./launch.mjs";
import { column, leastContrast, legend, names, paths, sideways, unnamedControls } from "./measures.mjs";

const [, , file, shots] = process.argv;
const browser = await launch();
const seen = {};

/** Only at a place that is in view can the mouse be. */
async function pointAt(page, selector, across, down) {
  const target = page.locator(selector).first();
  await target.scrollIntoViewIfNeeded();
  const box = await target.boundingBox();
  await page.mouse.move(box.x + box.width * across, box.y + box.height * down);
}

async function shot(page, name, fullPage = true) {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png`, fullPage });
}

async function renders({ page }) {
  seen.title = await page.title();
  seen.heading = await page.locator("h1").textContent();
  seen.sections = await page.locator("h2").allTextContents();
  seen.charts = await page.locator("svg.chart").count();
  seen.means = (await page.evaluate(paths, "mean")).length;
  seen.bands = (await page.evaluate(paths, "band")).length;
  seen.scripts = await page.locator("script").count();
  seen.unnamed = await page.evaluate(unnamedControls);
  seen.problems = await page.locator("#problems li").allTextContents();
  seen.claims = await page.locator("#claims li .verdict").allTextContents();
  seen.paint = await page.evaluate(() => performance.getEntriesByType("paint").map((entry) => entry.startTime));
  seen.sensitivityHeading = await page.locator("#sensitivity h2").textContent();
  seen.exploration = await page.locator("#exploration path.mean").count();
}

async function hovers({ page }) {
  seen.legendBefore = await page.evaluate(legend);
  await pointAt(page, "#curves .plot", 0.5, 0.3);
  seen.legendHover = await page.evaluate(legend);
  seen.runs = (await page.evaluate(paths, "run")).length;
  seen.runName = await page.locator("#curves .run-name").textContent();
  await shot(page, "report-hover", false);
  await page.mouse.move(5, 5);
  seen.runsAfter = (await page.evaluate(paths, "run")).length;
  const told = page.locator("#sensitivity .readout.point").first();
  await pointAt(page, "#sensitivity .dot", 0.5, 0.5);
  seen.sensitivity = await told.textContent();
  await page.locator("#sensitivity .dot").nth(1).focus();
  seen.sensitivityFocus = await told.textContent();
}

async function keys({ page }) {
  const plot = page.locator("#curves .plot");
  const value = async () => Number(await plot.getAttribute("aria-valuenow"));
  await plot.focus();
  seen.keyStart = await value();
  await page.keyboard.press("ArrowLeft");
  seen.keyLeft = await value();
  await page.keyboard.press("Home");
  seen.keyHome = await value();
  await page.keyboard.press("Shift+ArrowRight");
  seen.keyTen = await value();
  seen.keyWords = await plot.getAttribute("aria-valuetext");
  await page.keyboard.press("Escape");
}

async function switches({ page }) {
  const control = (label) => page.locator("#curves .control", { hasText: label }).locator("select");
  const [mean, band] = [await page.evaluate(paths, "mean"), await page.evaluate(paths, "band")];
  await control("Band").selectOption("error");
  seen.errorBandDiffers = JSON.stringify(await page.evaluate(paths, "band")) !== JSON.stringify(band);
  await control("Band").selectOption("none");
  seen.noBands = (await page.evaluate(paths, "band")).length;
  await control("Band").selectOption("interval");
  await control("Statistic").selectOption("iqm");
  seen.iqmDiffers = JSON.stringify(await page.evaluate(paths, "mean")) !== JSON.stringify(mean);
  await control("Statistic").selectOption("mean");
  seen.meanAgain = JSON.stringify(await page.evaluate(paths, "mean")) === JSON.stringify(mean);
  await control("Single runs").selectOption("always");
  seen.runsAlways = (await page.evaluate(paths, "run")).length;
  await control("Single runs").selectOption("never");
  await pointAt(page, "#curves .plot", 0.5, 0.3);
  seen.runsNever = (await page.evaluate(paths, "run")).length;
  await control("Single runs").selectOption("hover");
}

async function sorts({ page }) {
  const head = (words) => page.locator("#ranking th button", { hasText: words });
  seen.first = await page.evaluate(names);
  await head("worst run").click();
  seen.worstDown = await page.evaluate(column, "AUC, worst run");
  seen.ariaDown = await page.locator("#ranking th[data-key=worst]").getAttribute("aria-sort");
  await head("worst run").click();
  seen.worstUp = await page.evaluate(column, "AUC, worst run");
  seen.ariaUp = await page.locator("#ranking th[data-key=worst]").getAttribute("aria-sort");
  await head("setting").focus();
  await page.keyboard.press("Enter");
  seen.byName = await page.evaluate(names);
  await head("rank").click();
}

async function filters({ page }) {
  await page.locator("#ranking input[type=search]").fill("WIDTH=64 0.001");
  seen.filtered = await page.evaluate(names);
  seen.filterWords = await page.locator("#ranking [role=status]").textContent();
  await page.locator("#ranking input[type=search]").fill("nothing is called this");
  seen.filteredOut = await page.evaluate(names);
  await page.locator("#ranking input[type=search]").fill("");
  await page.locator("#ranking .control", { hasText: "Case" }).locator("select").selectOption("epsilon-greedy");
  seen.ofCase = await page.evaluate(names);
  await page.locator("#ranking .control", { hasText: "Case" }).locator("select").selectOption("");
  await page.locator("#ranking .after button").click();
  seen.all = await page.evaluate(names);
}

async function chooses({ page }) {
  seen.added = await page.locator("#ranking tbody input[type=checkbox]:not(:checked)").first().getAttribute("aria-label");
  await page.getByLabel(seen.added, { exact: true }).focus();
  await page.keyboard.press("Space");
  seen.focusKept = (await page.evaluate(() => document.activeElement.getAttribute("aria-label"))) === seen.added;
  seen.meansAdded = (await page.evaluate(paths, "mean")).length;
  seen.legendAdded = await page.evaluate(legend);
  await page.locator("#curves .legend button").last().click();
  seen.meansRemoved = (await page.evaluate(paths, "mean")).length;
  await page.locator("#curves input[list]").fill(seen.first[5]);
  await page.keyboard.press("Tab");
  seen.meansTyped = (await page.evaluate(paths, "mean")).length;
  await page.locator("#curves .legend button").last().click();
}

/** Saves the tables as a reader would, and reads the paragraph on methods. */
async function saves({ page }) {
  seen.saved = {};
  for (const button of await page.locator("button.save").all()) {
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    const parts = [];
    for await (const part of await download.createReadStream()) parts.push(part);
    seen.saved[download.suggestedFilename()] = Buffer.concat(parts).toString();
  }
  seen.methods = await page.locator("#methods textarea").inputValue();
  await page.locator("#methods button").click();
  seen.selected = await page.evaluate(() => document.getSelection().toString() || document.activeElement.value);
  seen.beside = await page.locator("#settings .hint a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  seen.pages = await page.locator("header nav a[href$='.html']").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
}

async function themes({ page }) {
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  seen.light = { back: await back(), contrast: await page.evaluate(leastContrast) };
  await page.locator("header button").click();
  await page.locator("header button").click();
  seen.toggled = { back: await back(), words: await page.locator("header button").textContent() };
  await page.locator("header button").click();
  await page.emulateMedia({ media: "print" });
  seen.printed = await page.locator("#curves .controls").isVisible();
  await page.emulateMedia({ media: "screen" });
}

/** Last, because what is refused is reported on the console. */
async function attacks({ page }) {
  seen.attack = await page.evaluate(async () => {
    const script = document.createElement("script");
    script.textContent = "window.broken = true";
    document.body.append(script);
    const style = document.createElement("style");
    style.textContent = "body { display: none }";
    document.body.append(style);
    const asked = await fetch("data:text/plain,hello").then(() => "answered", () => "refused");
    return { script: window.broken === true, style: getComputedStyle(document.body).display === "none", asked };
  });
}

const first = await open(browser, file);
for (const part of [renders, hovers, keys, switches, sorts, filters, chooses, saves, themes]) await part(first);
seen.heard = structuredClone(first.heard);
await shot(first.page, "report-desktop");
await attacks(first);

const phone = await open(browser, file, { viewport: { width: 360, height: 740 }, colorScheme: "dark", hasTouch: true, isMobile: true });
seen.phone = await phone.page.evaluate(sideways);
seen.dark = { contrast: await phone.page.evaluate(leastContrast) };
seen.dark.back = await phone.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const plot = phone.page.locator("#curves .plot");
await plot.scrollIntoViewIfNeeded();
await plot.tap();
seen.tapped = await phone.page.locator("#curves .rule").count();
seen.phoneHeard = phone.heard;
await shot(phone.page, "report-phone-dark");

const dark = await open(browser, file, { colorScheme: "dark" });
await shot(dark.page, "report-dark");
await browser.close();
process.stdout.write(JSON.stringify(seen));
