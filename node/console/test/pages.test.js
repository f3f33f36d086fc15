// Each page as an administrator uses it through facet console, beside a real cluster.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { texts } from "../web/texts.js";
import { choosePhoto, launch, photo, visit } from "./browser.js";
import { startCluster, startConsole } from "./cluster.js";
import { createTags, fact, folderOf, go, importFolder, makeGallery, pages, saved, sound } from "./steps.js";

/** @type {Awaited<ReturnType<typeof startCluster>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("./browser.js").Visit} */
let v;
/** @type {string[]} */
const folders = [];

/** @param {Parameters<typeof folderOf>[0]} files */
function folder(files) {
  const made = folderOf(files);
  folders.push(made);
  return made;
}

before(async () => {
  browser = await launch();
  cluster = await startCluster();
  v = await visit(browser, cluster.address, { viewport: { width: 1200, height: 800 } });
  v.page.setDefaultTimeout(15_000);
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
  folders.forEach((dir) => rmSync(dir, { recursive: true }));
});

test("each page is sound while it is empty", async () => {
  for (const [path, title] of pages) {
    await go(v.page, path, title);
    await v.page.waitForLoadState("networkidle");
    await sound(v, path);
  }
});

test("galleries are made and changed", async () => {
  await makeGallery(v.page, "staff");
  await v.page.getByRole("button", { name: texts.galleries.change }).click();
  const dialog = v.page.locator("dialog");
  await sound(v, "the dialog");
  await dialog.getByLabel(texts.galleries.verifyThreshold).fill("6500");
  await dialog.getByLabel(texts.galleries.guardOn).check();
  await dialog.getByLabel(texts.galleries.guardThreshold).fill("8000");
  await dialog.getByRole("button", { name: texts.galleries.save }).click();
  await v.page.getByText(texts.galleries.guardFrom(8000)).waitFor();
  await v.page.getByRole("cell", { name: "6500" }).waitFor();
  await v.page.getByRole("button", { name: texts.galleries.change }).click();
  await dialog.getByLabel(texts.galleries.guardOn).uncheck();
  await dialog.getByRole("button", { name: texts.galleries.save }).click();
  await v.page.getByRole("cell", { name: texts.galleries.off }).waitFor();
  await v.page.getByRole("button", { name: texts.galleries.describe }).click();
  await sound(v, "the dialog of purpose and ground");
  await dialog.getByLabel(texts.galleries.purpose).fill("entry of staff");
  await dialog.getByLabel(texts.galleries.legalGround).fill("works agreement");
  await dialog.getByRole("button", { name: texts.galleries.save }).click();
  await v.page.getByText("entry of staff", { exact: true }).waitFor();
  await v.page.getByText("works agreement", { exact: true }).waitFor();
  await v.page.getByText(texts.galleries.notStated, { exact: true }).waitFor();
});

test("a tab keeps what another tab has set meanwhile", async () => {
  const g = texts.galleries;
  const other = await v.page.context().newPage();
  await other.goto(v.page.url().replace(/#.*/, ""));
  await go(other, "galleries", g.title);
  await other.getByRole("button", { name: g.change }).click();
  await v.page.bringToFront(); // a tab behind another one may not be drawn, and then takes no click
  await v.page.getByRole("button", { name: g.change }).click();
  await v.page.getByLabel(g.verifyThreshold).fill("8000");
  await v.page.getByRole("button", { name: g.save }).click();
  await v.page.getByRole("cell", { name: "8000" }).waitFor();
  await other.bringToFront();
  await other.getByLabel(g.minimumQuality).fill("0.6");
  await other.getByRole("button", { name: g.save }).click();
  await other.getByRole("cell", { name: "0.6" }).waitFor();
  assert.equal(await other.getByRole("cell", { name: "8000" }).count(), 1);
  await other.close();
});

test("a folder is imported, and what fails is named", async () => {
  const people = folder({
    "obama/1.jpg": "face_recognition/obama.jpg",
    "obama/2.jpg": "face_recognition/obama2.jpg",
    "biden/1.jpg": "face_recognition/biden.jpg",
    "nobody/1.jpg": "scikit-image/rocket.jpg",
    "broken/1.jpg": Buffer.from("no photo"),
  });
  await importFolder(v.page, people);
  assert.equal(await fact(v.page, texts.import.outcomes.registered ?? ""), "2");
  assert.equal(await fact(v.page, texts.import.outcomes.added ?? ""), "1");
  assert.equal(await fact(v.page, texts.import.outcomes.failed ?? ""), "2");
  await sound(v, "the import");
  const report = await saved(v.page, () => v.page.getByRole("button", { name: texts.import.report }).click());
  assert.match(report, /^row,file,external_id,subject_id,event_id,quality,outcome,reason\r\n/);
  assert.match(report, /,biden\/1.jpg,biden,[-0-9a-f]{36},[-0-9a-f]{36},0\.\d\d,registered,\r\n/);
  assert.equal(report.match(/,failed,./g)?.length, 2);
});

test("a list is imported with its tags and times, and goes on in another browser", async (t) => {
  /** @type {Record<string, string | Buffer>} */
  const files = {};
  for (let i = 1; i <= 6; i++) files[`${i}.jpg`] = `face-api/sample${i}.jpg`;
  for (let i = 7; i <= 24; i++) files[`${i}.jpg`] = "scikit-image/astronaut.png";
  const dir = folder(files);
  const rows = Object.keys(files).map((name, i) => `${name},p-${i},x;y,2099-12-31T00:00:00Z`);
  const list = join(folder({ "list.csv": Buffer.from(["file,external_id,tags,expires", ...rows, "none.jpg,p-99,,"].join("\n")) }), "list.csv");
  await createTags(v.page, ["x", "y"]);
  const first = await v.page.context().newPage();
  await first.goto(v.page.url());
  await go(first, "import", texts.import.title);
  await first.locator("input[webkitdirectory]").setInputFiles(dir);
  await first.locator('input[accept*="csv"]').setInputFiles(list);
  await first.getByRole("button", { name: texts.import.import, exact: true }).click();
  await first.waitForFunction(() => (document.querySelector("progress")?.value ?? 0) >= 10);
  await first.close();
  const elsewhere = await otherBrowser(); // nothing is kept there
  t.after(elsewhere.close);
  await importFolder(elsewhere.page, dir, list);
  const registered = Number(await fact(elsewhere.page, texts.import.outcomes.registered ?? ""));
  const already = Number(await fact(elsewhere.page, texts.import.outcomes.already ?? ""));
  assert.ok(already >= 10, `${already} were known to be in`);
  assert.equal(await fact(elsewhere.page, texts.import.outcomes.skipped ?? ""), "");
  await elsewhere.page.getByText(texts.import.partIn(String(registered + already), "25"), { exact: true }).waitFor();
  await v.page.reload();
  await go(v.page, "galleries", texts.galleries.title);
  await v.page.getByText(texts.galleries.used(String(3 + registered + already), "1,000")).waitFor();
  await v.page.getByRole("link", { name: texts.galleries.showSubjects }).click();
  await v.page.getByText(/Dec 31, 2099/).first().waitFor();
  await sound(v, "the subjects");
});

/** otherBrowser opens facet console in a browser that keeps nothing of the first one. */
async function otherBrowser() {
  const { address, stop } = await startConsole("--dir", cluster.dir);
  const other = await visit(browser, address, { viewport: { width: 1200, height: 800 } });
  other.page.setDefaultTimeout(15_000);
  return { ...other, close: () => other.close().then(stop) };
}

test("a subject is found by its external id, and removed", async () => {
  await v.page.getByLabel(texts.galleries.externalId).fill("biden");
  await v.page.getByRole("button", { name: texts.galleries.find }).click();
  await v.page.getByText(texts.galleries.entries("1"), { exact: true }).waitFor();
  await v.page.getByRole("button", { name: texts.galleries.remove }).click();
  await v.page.locator("dialog").getByRole("button", { name: texts.galleries.remove }).click();
  await v.page.locator("dialog").waitFor({ state: "detached" });
  await v.page.getByText(texts.galleries.noSuch).waitFor();
  await v.page.getByRole("button", { name: texts.galleries.all }).click();
  await v.page.getByText(/^1 to /).waitFor();
});

test("known persons are skipped, added to or replaced, as the page asks", async () => {
  const [first, second] = [folder({ "known/1.png": "scikit-image/astronaut.png" }), folder({ "known/1.jpg": "face_recognition/biden.jpg" })];
  const outcomes = texts.import.outcomes;
  /** @type {(dir: string, known: "skip" | "replace" | "add", outcome: string, notice: string) => Promise<void>} */
  const f = async (dir, known, outcome, notice) => {
    await go(v.page, "import", texts.import.title);
    await v.page.getByLabel(texts.import.knowns[known] ?? "").check();
    await importFolder(v.page, dir);
    const what = `${known}, ${outcome}`;
    assert.equal(await fact(v.page, outcomes[outcome] ?? ""), "1", what);
    await v.page.locator(".notice").getByText(notice, { exact: true }).waitFor();
    assert.equal(await v.page.locator(".notice.good").count(), notice === texts.import.allIn ? 1 : 0, what);
  };
  await f(first, "skip", "registered", texts.import.allIn);
  await f(first, "skip", "already", texts.import.allIn);
  await f(second, "skip", "skipped", texts.import.partIn("0", "1"));
  await sound(v, "an import that skipped all");
  await f(second, "add", "added", texts.import.allIn);
  await f(second, "add", "already", texts.import.allIn);
  await f(first, "replace", "replaced", texts.import.allIn);
  await f(second, "skip", "already", texts.import.allIn);
});

test("an import that runs is not left without a question", async () => {
  /** @type {() => void} */
  let release = () => {};
  const held = new Promise((resolve) => (release = () => resolve(undefined)));
  await v.page.route("**/v1.1/subjects", (route) => held.then(() => route.continue()));
  /** @type {string[]} */
  const asked = [];
  v.page.on("dialog", (d) => void (asked.push(`${d.type()} ${d.message()}`), d.dismiss()));
  await go(v.page, "import", texts.import.title);
  await v.page.locator("input[webkitdirectory]").setInputFiles(folder({ "q-1/1.png": "scikit-image/astronaut.png", "q-2/1.png": "scikit-image/astronaut.png" }));
  await v.page.getByRole("button", { name: texts.import.import, exact: true }).click();
  await v.page.getByRole("button", { name: texts.import.stop }).waitFor();
  await v.page.getByRole("link", { name: texts.frame.galleries, exact: true }).click();
  await v.page.getByRole("button", { name: texts.import.stop }).waitFor();
  assert.deepEqual(asked, [`confirm ${texts.frame.leave}`]);
  await v.page.close({ runBeforeUnload: true });
  for (let i = 0; i < 100 && asked.length < 2; i++) await v.page.waitForTimeout(50);
  assert.match(asked[1] ?? "", /^beforeunload/);
  release();
  await v.page.getByRole("button", { name: texts.import.report }).waitFor();
  assert.equal(await fact(v.page, texts.import.outcomes.registered ?? ""), "2", "the question stopped the import");
  await v.page.unroute("**/v1.1/subjects");
  await go(v.page, "galleries", texts.galleries.title);
  assert.equal(asked.length, 2, "a question after the end of the import");
});

test("a photo is searched, and its faces are shown", async () => {
  await go(v.page, "try", texts.try.title);
  await choosePhoto(v.page, texts.try.choose, photo("face_recognition/obama3.jpg"));
  await v.page.getByText(texts.try.usable).waitFor();
  await v.page.getByRole("button", { name: texts.try.search, exact: true }).click();
  await v.page.getByText(/^1 found, in \d+ ms$/).waitFor();
  await v.page.getByRole("cell", { name: /^obama/ }).waitFor();
  await v.page.getByText(texts.try.asCode).click();
  await v.page.locator("summary", { hasText: texts.try.measures }).click();
  await sound(v, "the search");
  await v.page.getByRole("slider").fill("9950");
  await v.page.getByText(texts.try.nobody(9950)).waitFor();
  await v.page.getByRole("button", { name: texts.try.other }).click();
  await choosePhoto(v.page, texts.try.choose, photo("face-api/sample1.jpg"));
  await v.page.getByRole("button", { name: texts.try.face(2) }).click();
  await sound(v, "several faces");
});

test("a person is erased by a photo, and by an external id", async () => {
  await go(v.page, "erase", texts.erase.title);
  await choosePhoto(v.page, texts.erase.choose, photo("face_recognition/obama3.jpg"));
  await v.page.getByRole("slider").fill("9950");
  await v.page.getByRole("button", { name: texts.erase.find }).click();
  await v.page.getByRole("heading", { name: texts.erase.nobodyReaches(9950) }).waitFor();
  const near = v.page.getByRole("row").filter({ hasText: "obama" });
  await near.getByText(texts.erase.below(9950)).waitFor();
  await v.page.getByText(/by chance/).waitFor();
  assert.equal(await v.page.getByRole("button", { name: texts.erase.tickAll }).count(), 0, "all of those below are ticked at once");
  await sound(v, "the nearest");
  await v.page.getByLabel(texts.erase.tickOne("obama")).check();
  await v.page.getByRole("button", { name: texts.erase.erase(1) }).click();
  await v.page.locator("dialog").getByRole("button", { name: texts.erase.erase(1) }).click();
  await v.page.getByText(texts.erase.done(1)).waitFor();
  await v.page.getByRole("button", { name: texts.erase.saveReceipt }).waitFor();
  await sound(v, "the erasure");
  const receipt = () => saved(v.page, () => v.page.getByRole("button", { name: texts.erase.saveReceipt }).click());
  const before = await receipt();
  await v.page.reload();
  await v.page.getByText(texts.erase.done(1)).waitFor();
  const list = await saved(v.page, () => v.page.getByRole("button", { name: texts.erase.list }).click());
  assert.match(list, /^subject_id,external_id,gallery\r\n[-0-9a-f]{36},obama,staff\r\n$/);
  const of = (/** @type {string} */ text) => JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1)).subjects;
  assert.deepEqual(of(await receipt()), of(before), "another receipt after the reload");
  await v.page.getByLabel(texts.erase.externalId).fill("p-10");
  await v.page.getByRole("button", { name: texts.erase.find }).click();
  await v.page.getByText(texts.erase.found("1")).waitFor();
  await v.page.getByRole("button", { name: texts.erase.erase(1) }).click();
  await v.page.locator("dialog").getByRole("button", { name: texts.erase.erase(1) }).click();
  await v.page.getByText(texts.erase.done(2)).waitFor();
  await v.page.getByRole("button", { name: texts.erase.forget }).click();
  await v.page.getByRole("button", { name: texts.erase.find }).click();
  await v.page.getByText(texts.erase.nobody).waitFor();
  await v.page.reload();
  await v.page.getByLabel(texts.erase.externalId).waitFor();
  assert.equal(await v.page.getByText(texts.erase.done(2)).count(), 0, "the list is there though it was forgotten");
});

test("the lab compares photos and sets a threshold", async () => {
  /** @type {Record<string, string | Buffer>} */
  const files = { "obama/4.jpg": "face_recognition/obama_partial_face.jpg", "obama/5.jpg": "face_recognition/obama_partial_face2.jpg", "nobody/1.jpg": "scikit-image/rocket.jpg", "loose.jpg": "scikit-image/astronaut.png" };
  for (const [person, ...names] of [["obama", "obama", "obama2", "obama3"], ["biden", "biden", "biden"]]) names.forEach((name, i) => (files[`${person}/${i}.jpg`] = `face_recognition/${name}.jpg`));
  for (let i = 1; i <= 6; i++) for (const copy of ["a", "b"]) files[`sample${i}/${copy}.jpg`] = `face-api/sample${i}.jpg`;
  await go(v.page, "lab", texts.lab.title);
  await v.page.locator("input[webkitdirectory]").setInputFiles(folder(files));
  await v.page.getByText(texts.lab.chosen("20", "9")).waitFor();
  await v.page.getByRole("button", { name: texts.lab.compare }).click();
  await v.page.getByRole("heading", { name: texts.lab.report }).waitFor({ timeout: 60_000 });
  await v.page.getByText(texts.lab.notShown(0)).first().waitFor();
  const use = v.page.getByRole("button", { name: texts.lab.useAs(7500) });
  const wide = v.page.viewportSize();
  await v.page.setViewportSize({ width: 360, height: 800 });
  const box = await use.boundingBox();
  assert.ok(box && box.x >= 0 && box.x + box.width <= 360, `the button of a threshold is cut off: ${JSON.stringify(box)}`);
  if (wide) await v.page.setViewportSize(wide);
  await use.click();
  await v.page.getByText(texts.lab.isSet(7500, "staff")).waitFor();
  await sound(v, "the report");
  await v.page.emulateMedia({ colorScheme: "light" });
  const [light, dark, paper] = [await inks(), await inks({ colorScheme: "dark" }), await inks({ colorScheme: "dark", media: "print" })];
  assert.notDeepEqual(dark, light, "the chart keeps the other scheme's colours");
  assert.deepEqual(paper, light, "the chart on paper");
  await v.page.emulateMedia({ media: null, colorScheme: null });
  await go(v.page, "galleries", texts.galleries.title);
  await v.page.getByRole("cell", { name: "7500" }).waitFor();
});

/** inks returns the lightest and the darkest colour of the first chart. @param {Parameters<import("playwright-core").Page["emulateMedia"]>[0]} [media] */
async function inks(media) {
  if (media) await v.page.emulateMedia(media);
  await v.page.waitForTimeout(200); // the next frames
  return v.page.locator("canvas").first().evaluate((canvas) => {
    const c = /** @type {HTMLCanvasElement} */ (canvas);
    const { data } = /** @type {CanvasRenderingContext2D} */ (c.getContext("2d")).getImageData(0, 0, c.width, c.height);
    let [least, most] = [999, 0];
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] !== 255) continue;
      const sum = (data[i] ?? 0) + (data[i + 1] ?? 0) + (data[i + 2] ?? 0);
      [least, most] = [Math.min(least, sum), Math.max(most, sum)];
    }
    return [least, most];
  });
}

test("the cluster page shows each node", async () => {
  await go(v.page, "cluster", texts.cluster.title);
  for (const node of cluster.info.nodes) await v.page.getByRole("rowheader", { name: node.name }).first().waitFor();
  assert.equal(await v.page.getByText(texts.cluster.up, { exact: true }).count(), 3);
  await sound(v, "the cluster");
});

// The last one: it takes a node away.
test("a node dies while each page is open, and facet console goes on", async () => {
  const open = [];
  for (const [path, title] of pages) {
    const page = await v.page.context().newPage();
    await page.goto(v.page.url().replace(/#.*/, ""));
    await go(page, path, title);
    open.push({ page, path, title });
  }
  process.kill(cluster.info.nodes[1]?.pid ?? 0, "SIGKILL");
  for (const { page, path, title } of open) {
    if (path === "try") {
      await choosePhoto(page, texts.try.choose, photo("face_recognition/obama.jpg"));
      await page.getByText(texts.try.usable).waitFor();
    } else if (path === "cluster") await page.getByText(texts.cluster.down, { exact: true }).waitFor({ timeout: 30_000 });
    else if (path === "erase") {
      await page.getByLabel(texts.erase.externalId).fill("p-11");
      await page.getByRole("button", { name: texts.erase.find }).click();
      await page.getByText(texts.erase.found("1")).waitFor();
    } else {
      await page.reload();
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
      await page.waitForLoadState("networkidle");
    }
    assert.equal(await page.getByRole("alert").count(), 0, path);
  }
});
