// A gallery of 100,000 subjects: its pages come at once, and are the right ones.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { texts } from "../web/texts.js";
import { launch, visit } from "./browser.js";
import { fill, startDev } from "./cluster.js";
import { folderOf, go, importFolder, makeGallery, saved, sound } from "./steps.js";

const events = 100_000;
const slowest = 2000; // ms, of a page on a busy machine

/** @type {Awaited<ReturnType<typeof startDev>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;
let dir = "";

before(async () => {
  browser = await launch();
  dir = mkdtempSync(join(tmpdir(), "facet-console-"));
  cluster = await startDev(dir);
  const v = await visit(browser, cluster.address, { viewport: { width: 1000, height: 800 } });
  await makeGallery(v.page, "crowd", events + 1000);
  const one = folderOf({ "obama/1.jpg": "face_recognition/obama.jpg" });
  await importFolder(v.page, one);
  rmSync(one, { recursive: true });
  const report = await saved(v.page, () => v.page.getByRole("button", { name: texts.import.report }).click());
  const [subject = "", event = ""] = report.match(/[-0-9a-f]{36}/g) ?? [];
  await v.close();
  await cluster.stop();
  fill({ dir, info: cluster.info, gallery: "crowd", subject, event, events });
  cluster = await startDev(dir);
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
  rmSync(dir, { recursive: true, force: true });
});

test("first, next and previous page are quick and right", async () => {
  const v = await visit(browser, cluster.address, { viewport: { width: 1000, height: 800 } });
  await go(v.page, "galleries", texts.galleries.title);
  await v.page.getByText(/^100,\d{3} of 101,000 photos/).waitFor();
  const ids = () => v.page.locator("tbody .id").allTextContents();
  const shows = async (/** @type {number} */ first, /** @type {() => Promise<void>} */ action) => {
    const began = performance.now();
    await action();
    await v.page.getByText(new RegExp(`^${first.toLocaleString("en")} to ${(first + 99).toLocaleString("en")} of 100,\\d{3}$`)).waitFor();
    const took = performance.now() - began;
    assert.ok(took < slowest, `the page from ${first} on took ${took} ms`);
    return ids();
  };
  const next = () => v.page.getByRole("button", { name: texts.galleries.next }).click();
  const previous = () => v.page.getByRole("button", { name: texts.galleries.previous }).click();
  const first = await shows(1, () => v.page.getByRole("link", { name: texts.galleries.showSubjects }).click());
  const second = await shows(101, next);
  const third = await shows(201, next);
  assert.equal(new Set([...first, ...second, ...third]).size, 300, "a subject is on two pages");
  assert.deepEqual(await shows(101, previous), second);
  assert.deepEqual(await shows(1, previous), first);
  await shows(101, async () => void (await v.page.getByRole("button", { name: texts.galleries.next }).dblclick()));
  assert.deepEqual(await ids(), second, "a double click shows another page than it names");
  await sound(v, "the list");
  await v.close();
});
