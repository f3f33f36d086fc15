import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { texts } from "../web/texts.js";
import { accessibility, overflow, photo } from "./browser.js";

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {import("./browser.js").Visit} Visit */

/** The pages by the last part of their address, with their titles. */
export const pages = /** @type {const} */ ([
  ["try", texts.try.title],
  ["galleries", texts.galleries.title],
  ["cluster", texts.cluster.title],
  ["import", texts.import.title],
  ["duplicates", texts.duplicates.title],
  ["review", texts.review.title],
  ["erase", texts.erase.title],
  ["lab", texts.lab.title],
  ["audit", texts.audit.title],
]);

/**
 * go opens one of the pages.
 * @param {Page} page
 * @param {string} path
 * @param {string} title
 */
export async function go(page, path, title) {
  await page.evaluate((p) => void (location.hash = `#/${p}`), path);
  await page.getByRole("heading", { level: 1, name: title }).waitFor();
}

/**
 * sound checks a page in both schemes: nothing broken by the rules of accessibility, nothing to
 * scroll sideways at 320 pixels, and no fault.
 * @param {Visit} v
 * @param {string} what
 */
export async function sound(v, what) {
  for (const [colorScheme, width] of /** @type {const} */ ([["light", 320], ["dark", 1200], ["dark", 320], ["light", 1200]])) {
    await v.page.emulateMedia({ colorScheme });
    await v.page.setViewportSize({ width, height: 800 });
    await v.page.waitForTimeout(100); // plots follow in the next frame
    assert.ok((await overflow(v.page)) <= 0, `${what} scrolls sideways at ${width} pixels`);
    assert.deepEqual(await accessibility(v.page), [], `${what}, ${colorScheme}, ${width} pixels`);
  }
  assert.deepEqual(v.faults, [], what);
}

/**
 * makeGallery makes one on the galleries page.
 * @param {Page} page
 * @param {string} name
 * @param {number} [size]
 */
export async function makeGallery(page, name, size = 1000) {
  await go(page, "galleries", texts.galleries.title);
  await page.getByRole("button", { name: texts.galleries.make }).click();
  const dialog = page.locator("dialog");
  await dialog.getByLabel(texts.galleries.name).fill(name);
  await dialog.getByLabel(texts.galleries.size).fill(String(size));
  await dialog.getByRole("button", { name: texts.galleries.make }).click();
  await page.getByRole("heading", { name, exact: true }).waitFor();
}

/**
 * importFolder imports a folder, with a list if there is one, and waits for the end.
 * @param {Page} page
 * @param {string} folder
 * @param {string} [list]
 */
export async function importFolder(page, folder, list) {
  await go(page, "import", texts.import.title);
  await page.locator("input[webkitdirectory]").setInputFiles(folder);
  if (list) await page.locator('input[accept*="csv"]').setInputFiles(list);
  await page.getByRole("button", { name: texts.import.import, exact: true }).click();
  await page.getByRole("button", { name: texts.import.report }).waitFor({ timeout: 60_000 });
}

/**
 * createTags makes tags in the only gallery; no page does that.
 * @param {Page} page
 * @param {string[]} names
 */
export const createTags = (page, names) =>
  page.evaluate(async (wanted) => {
    const from = "/console/state.js"; // not known to the types
    const { inGallery } = await import(from);
    for (const name of wanted) await inGallery.value.createTag(name);
  }, names);

/**
 * fact returns the text beside a term of a list of facts, or "".
 * @param {Page} page
 * @param {string} term
 */
export const fact = (page, term) => page.evaluate((t) => [...document.querySelectorAll("dt")].find((dt) => dt.textContent === t)?.nextElementSibling?.textContent ?? "", term);

/**
 * saved returns the text of the file that an action saves.
 * @param {Page} page
 * @param {() => Promise<void>} action
 */
export async function saved(page, action) {
  const [download] = await Promise.all([page.waitForEvent("download"), action()]);
  const pieces = [];
  for await (const piece of await download.createReadStream()) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/**
 * signIn fills in the form of a node's page.
 * @param {Page} page
 * @param {{ accessKey: string, secretKey: string, apiKey?: string, stay?: boolean }} as
 */
export async function signIn(page, { accessKey, secretKey, apiKey = "", stay = false }) {
  await page.getByLabel(texts.signIn.accessKey).fill(accessKey);
  await page.getByLabel(texts.signIn.secretKey).fill(secretKey);
  await page.getByLabel(texts.signIn.apiKey).fill(apiKey);
  if (stay) await page.getByLabel(texts.signIn.stay).check();
  await page.getByRole("button", { name: texts.signIn.signIn, exact: true }).click();
}

/**
 * folderOf makes a folder of sample photos, whose caller removes it.
 * @param {Record<string, string | Buffer>} files from a path to the name of a sample, or to bytes
 */
export function folderOf(files) {
  const dir = mkdtempSync(join(tmpdir(), "facet-photos-"));
  for (const [path, from] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    if (typeof from === "string") cpSync(photo(from), join(dir, path));
    else writeFileSync(join(dir, path), from);
  }
  return dir;
}

/**
 * areEqual fails unless the buttons of a row look alike: none is the one that the page would press.
 * @param {import("playwright-core").Locator} row
 * @param {number} n how many there are
 */
export async function areEqual(row, n) {
  const looks = await row.getByRole("button").evaluateAll((all) => all.map((b) => ["color", "backgroundColor", "borderColor", "fontWeight"].map((name) => getComputedStyle(b)[/** @type {any} */ (name)]).join()));
  assert.equal(looks.length, n);
  assert.equal(new Set(looks).size, 1, looks.join("\n"));
}
