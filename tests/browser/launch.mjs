// A headless chromium, and an ear for everything that a page says or asks for.

import { chromium } from "playwright-core";

export const launch = () =>
  chromium.launch({ executablePath: process.env.IPE_CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });

/** Open a file in a new page; `heard` fills with its requests, console messages, errors and dialogs. */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
  const page = await context.newPage();
  const heard = { requests: [], console: [], errors: [], dialogs: [] };
  page.on("request", (request) => heard.requests.push(request.url()));
  page.on("console", (message) => heard.console.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => heard.errors.push(error.message));
  page.on("dialog", (dialog) => {
    heard.dialogs.push(dialog.message());
    dialog.dismiss();
  });
  await page.goto(`file://${file}`);
  return { page, heard };
}
