import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const installed = join(import.meta.dirname, "../../../assets/tools/chromium/chrome");
const photos = join(import.meta.dirname, "../../../assets/photos");
/** What Chromium itself writes of a refusal; the pages show those in words. */
const handled = /^Failed to load resource: the server responded with a status of 4\d\d /;
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** launch starts the browser that scripts/chromium.sh brought, or that of CHROME, with more of its arguments. */
export function launch(args = /** @type {string[]} */ ([])) {
  const program = process.env.CHROME || installed;
  if (!existsSync(program)) throw new Error(`there is no ${program}: run scripts/chromium.sh first`);
  return chromium.launch({ args, executablePath: program, chromiumSandbox: process.getuid?.() !== 0 });
}

/**
 * Visit is a page with all it did that it must not.
 * @typedef {{ page: import("playwright-core").Page, faults: string[], close: () => Promise<void> }} Visit
 */

/**
 * visit opens an address in a browser profile of its own.
 * @param {import("playwright-core").Browser} browser
 * @param {string} address
 * @param {import("playwright-core").BrowserContextOptions} [options]
 * @returns {Promise<Visit>}
 */
export async function visit(browser, address, options = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
  /** @type {string[]} */
  const faults = [];
  const host = new URL(address).host;
  await context.exposeBinding("facetFault", (_, /** @type {string} */ what) => void faults.push(what));
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (e) => {
      // @ts-ignore the binding above
      window.facetFault(`the policy refused ${e.violatedDirective} ${e.blockedURI}`);
    });
  });
  await context.addInitScript(axeSource);
  const page = await context.newPage();
  page.on("request", (r) => {
    const url = new URL(r.url());
    if (url.host !== host && url.protocol !== "blob:" && url.protocol !== "data:") faults.push(`request to ${r.url()}`);
  });
  page.on("console", (m) => {
    if ((m.type() === "error" || m.type() === "warning") && !handled.test(m.text())) faults.push(`console: ${m.text()}`);
  });
  page.on("pageerror", (e) => faults.push(`error: ${e}`));
  await page.goto(address);
  return { page, faults, close: () => context.close() };
}

/**
 * accessibility returns the rules of accessibility that a page breaks.
 * @param {import("playwright-core").Page} page
 * @returns {Promise<string[]>}
 */
export async function accessibility(page) {
  // @ts-ignore the script that visit added
  const result = await page.evaluate(() => window.axe.run());
  return result.violations.map((/** @type {any} */ v) => `${v.id}: ${v.nodes.map((/** @type {any} */ n) => n.html).join(" ")}`);
}

/**
 * overflow returns how many pixels a page is wider than its window.
 * @param {import("playwright-core").Page} page
 */
export function overflow(page) {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
}

/**
 * photo returns the path of a sample photo.
 * @param {string} name
 */
export const photo = (name) => join(photos, name);

/**
 * choosePhoto gives a file to the field with a label.
 * @param {import("playwright-core").Page | import("playwright-core").Locator} page
 * @param {string} label
 * @param {Parameters<import("playwright-core").Locator["setInputFiles"]>[0]} file
 */
export const choosePhoto = (page, label, file) => page.getByLabel(label, { exact: true }).setInputFiles(file);
