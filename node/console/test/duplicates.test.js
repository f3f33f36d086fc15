// Duplicates of a gallery, from the comparison to the verdict, with real faces and a real Chromium.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { photoAddress, standardThreshold } from "../web/pages/duplicates.js";
import { texts } from "../web/texts.js";
import { launch, photo, visit } from "./browser.js";
import { createKey, startCluster } from "./cluster.js";
import { areEqual, folderOf, go, importFolder, makeGallery, saved, signIn, sound } from "./steps.js";

const t = texts.duplicates;
const copies = 60; // of one photo: each is a pair with each other one

/** @type {Awaited<ReturnType<typeof startCluster>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("./browser.js").Visit} */
let v;
/** @type {{ path: string, referrer: string | undefined }[]} */
const asked = [];
let people = "";

// Stands for the place where an organisation shows the photos of its people.
const photos = createServer((request, response) => {
  if (request.url !== "/favicon.ico") asked.push({ path: request.url ?? "", referrer: request.headers.referer });
  response.writeHead(200, { "content-type": "image/jpeg" }).end(readFileSync(photo("face_recognition/obama.jpg")));
});

const facet = (/** @type {string[]} */ ...args) =>
  execFileSync(join(import.meta.dirname, "../../../bin/facet"), [...args, "--dir", cluster.dir], { encoding: "utf8" });

before(async () => {
  browser = await launch();
  cluster = await startCluster();
  await new Promise((resolve) => photos.listen(0, "127.0.0.1", () => resolve(undefined)));
  v = await visit(browser, cluster.address, { viewport: { width: 1000, height: 800 } });
  v.page.setDefaultTimeout(15_000);
  await makeGallery(v.page, "staff");
  people = folderOf({
    "obama 1/1.jpg": "face_recognition/obama.jpg", "obama&2/1.jpg": "face_recognition/obama.jpg", "obama 3/1.jpg": "face_recognition/obama.jpg",
    "biden 1/1.jpg": "face_recognition/biden.jpg", "biden 2/1.jpg": "face_recognition/biden.jpg", "astronaut/1.png": "scikit-image/astronaut.png",
  });
  await importFolder(v.page, people);
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
  photos.close();
  rmSync(people, { recursive: true, force: true });
});

/**
 * row is the line of a pair.
 * @param {string} a
 * @param {string} b
 */
const row = (a, b) => v.page.locator("tbody tr").filter({ hasText: a }).filter({ hasText: b });

/** compare begins a comparison and waits for its report. */
async function compare() {
  await go(v.page, "duplicates", t.title);
  await v.page.getByRole("button", { name: new RegExp(`^(${t.begin}|${t.again})$`) }).click();
  await v.page.getByRole("heading", { name: /pairs? in/ }).waitFor();
}

/**
 * look opens both photos of a pair by the keyboard alone, and returns the buttons that appear then.
 * @param {string} a
 * @param {string} b
 */
async function look(a, b) {
  const of = row(a, b);
  for (const name of [a, b]) {
    assert.equal(await of.getByRole("button", { name: t.same, exact: true }).count(), 0, "a verdict before both photos were opened");
    const [tab] = await Promise.all([v.page.context().waitForEvent("page"), of.getByRole("link", { name: t.photoOf(name) }).press("Enter")]);
    await tab.waitForLoadState();
    assert.equal(await tab.evaluate(() => window.opener), null, "the photo's page knows the console");
    await tab.close();
  }
  await of.getByRole("button", { name: t.same, exact: true }).waitFor();
  await of.getByText(t.unseen).waitFor();
  await of.getByText(texts.review.scoreAfter, { exact: true }).waitFor();
  await areEqual(of, 3);
  return of;
}

test("without a photo link there are pairs and a table, and no verdict", async () => {
  await compare();
  await v.page.getByRole("heading", { name: t.found(4, 2) }).waitFor();
  await v.page.getByText(t.thresholdHint("6", 7000)).waitFor();
  await v.page.getByText(t.caution(7000)).waitFor();
  await v.page.getByText(t.noLink).waitFor();
  await v.page.getByText(t.setLink("staff")).waitFor();
  assert.equal(await v.page.locator("tbody tr").count(), 4);
  assert.equal(await v.page.locator("tbody").getByRole("button").count(), 0, "a verdict without photos");
  assert.equal(await v.page.locator("tbody").getByRole("link").count(), 0);
  const text = await saved(v.page, () => v.page.getByRole("button", { name: t.export }).click());
  const lines = text.trim().split("\r\n");
  assert.equal(lines[0], "group,score,subject_id,external_id,other_subject_id,other_external_id");
  assert.equal(lines.length, 5);
  for (const line of lines.slice(1)) assert.match(line, /^[12],9999,[0-9a-f-]{36},(obama|biden)[^,]*,[0-9a-f-]{36},(obama|biden)[^,]*$/);
  await sound(v, "duplicates without a photo link");
});

test("whoever has opened both photos says that they differ, and takes it back", async () => {
  const address = photos.address();
  const port = typeof address === "object" ? address?.port : 0;
  facet("gallery", "update", "staff", "--photo-link", `http://127.0.0.1:${port}/photos/{externalId}.jpg?of={externalId}`);
  await v.page.reload();
  await compare();
  const of = await look("biden 1", "biden 2");
  assert.deepEqual(asked.map((a) => a.path).sort(), ["/photos/biden%201.jpg?of=biden%201", "/photos/biden%202.jpg?of=biden%202"]);
  assert.deepEqual(asked.map((a) => a.referrer), [undefined, undefined], "the photo's place learns where its visitor comes from");
  await sound(v, "duplicates with verdicts");
  await of.getByRole("button", { name: t.different, exact: true }).press("Enter");
  await of.getByText(t.areDifferent).waitFor();
  await of.getByText("9999", { exact: true }).waitFor();
  await compare();
  await v.page.getByRole("heading", { name: t.found(3, 1) }).waitFor();
  await v.page.getByText(t.leftOut(1)).waitFor();
  const { subjects: [a, b] } = await v.page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    const { inGallery } = await import(from);
    for await (const pair of inGallery.value.different()) return pair;
  });
  await v.page.evaluate(async ([a, b]) => {
    const from = "/console/state.js"; // not known to the types
    await (await import(from)).inGallery.value.unsetDifferent(a, b);
  }, [a.id, b.id]);
  await v.page.reload();
  await v.page.getByRole("heading", { name: t.found(4, 2) }).waitFor();
  const again = await look("biden 1", "biden 2");
  await again.getByRole("button", { name: t.different, exact: true }).click();
  await again.getByRole("button", { name: t.takeBack }).press("Enter");
  await again.getByRole("button", { name: t.same, exact: true }).waitFor();
});

test("the same person becomes one subject after a question that names both", async () => {
  const of = await look("obama 1", "obama&2");
  await of.getByRole("button", { name: t.same, exact: true }).press("Enter");
  const dialog = v.page.locator("dialog");
  const title = (await dialog.getByRole("heading").textContent()) ?? "";
  assert.ok(title.includes("obama 1") && title.includes("obama&2"), title);
  await sound(v, "the question before a merge");
  await v.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await of.getByRole("button", { name: t.same, exact: true }).press("Enter");
  await dialog.getByRole("radio", { name: /obama&2/ }).check();
  await dialog.getByRole("button", { name: t.merge("obama 1", "obama&2") }).press("Enter");
  await of.getByText(t.isGone("obama 1", t.merged)).waitFor();
  await row("obama 1", "obama 3").getByText(t.isGone("obama 1", t.merged)).waitFor();
  assert.match(facet("subject", "show", "externalId:obama&2"), /obama&2/);
  assert.throws(() => facet("subject", "show", "externalId:obama 1"), /no subject/);
});

test("who is erased gets a receipt", async () => {
  const of = await look("obama&2", "obama 3");
  await of.getByRole("button", { name: t.erase, exact: true }).press("Enter");
  const dialog = v.page.locator("dialog");
  await dialog.getByRole("checkbox", { name: /obama 3/ }).check();
  await sound(v, "the question before an erasure");
  await dialog.getByRole("button", { name: texts.erase.erase(1) }).press("Enter");
  await of.getByText(t.isGone("obama 3", t.erased)).waitFor();
  await v.page.getByText(texts.erase.done(1)).waitFor();
  await v.page.getByRole("button", { name: texts.erase.saveReceipt }).waitFor();
  assert.throws(() => facet("subject", "show", "externalId:obama 3"), /no subject/);
  assert.deepEqual(v.faults, []);
});

test("a reader sees no duplicates, and the service refuses them", async () => {
  const apiKey = await v.page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    return (await import(from)).application.value.apiKey;
  });
  for (const role of /** @type {const} */ (["read-only", "biometric"])) {
    const other = await visit(browser, `${cluster.info.base_urls[0]}/console/#/duplicates`, { viewport: { width: 1000, height: 800 } });
    await signIn(other.page, { ...createKey(cluster.dir, role), apiKey });
    await other.page.getByRole("heading", { name: texts.try.title }).waitFor();
    assert.equal(await other.page.getByRole("link", { name: texts.frame.duplicates }).count(), 0);
    const status = await other.page.evaluate(async () => {
      const from = "/console/state.js"; // not known to the types
      const c = (await import(from)).inGallery.value;
      const id = crypto.randomUUID();
      return Promise.all([c.duplicates(), c.setDifferent(id, id), c.beginDuplicates()].map((p) => p.then(() => 200, (/** @type {any} */ e) => e.status)));
    });
    assert.deepEqual(status, [403, 403, 403], role);
    await other.close();
  }
});

test("thousands of pairs come page by page", async () => {
  await makeGallery(v.page, "copies");
  const list = join(people, "list.csv");
  const rows = Array.from({ length: copies }, (_, i) => `copy ${i},${photo("face_recognition/biden.jpg")}\n`);
  writeFileSync(list, `external_id,file\n${rows.join("")}`);
  facet("import", list, "--gallery", "copies", "--outside");
  await v.page.reload();
  await go(v.page, "duplicates", t.title);
  await v.page.getByLabel(t.gallery).selectOption("copies");
  await compare();
  const pairs = (copies * (copies - 1)) / 2;
  await v.page.getByRole("heading", { name: t.found(pairs, 1) }).waitFor();
  const next = v.page.getByRole("button", { name: t.next, exact: true });
  const seen = new Set();
  for (let page = 0; page < Math.ceil(pairs / 50); page++) {
    await v.page.waitForFunction((last) => ![undefined, last].includes(document.querySelector("tbody tr")?.textContent), page ? [...seen].at(-1) : "");
    const shown = await v.page.locator("tbody tr").allTextContents();
    assert.equal(shown.length, Math.min(50, pairs - 50 * page), `page ${page}`);
    for (const text of shown.reverse()) seen.add(text);
    if (page < Math.ceil(pairs / 50) - 1) await next.click();
  }
  assert.equal(seen.size, pairs, "a pair is on two pages, or on none");
  assert.ok(await next.isDisabled());
  const text = await saved(v.page, () => v.page.getByRole("button", { name: t.export }).click());
  assert.equal(text.trim().split("\r\n").length, 1 + pairs);
  assert.deepEqual(v.faults, []);
});

test("the threshold begins where one pair of strangers is found for each 100 photos", () => {
  for (const [photos, want] of /** @type {const} */ ([[0, 7000], [1, 7000], [2000, 7000], [5000, 7400], [10_000, 7700], [20_000, 8000], [1_000_000, 8000]])) {
    const got = standardThreshold(photos);
    assert.equal(got, want, String(photos));
    const found = (photos * (photos - 1)) / 2 / 10 ** (got / 1000 - 2);
    assert.ok(photos > 20_001 || found <= photos / 100, `${found} of ${photos}`);
  }
});

test("a photo link is filled in by nothing but text", () => {
  const link = "https://hr.example/p/{externalId}";
  assert.equal(photoAddress(link, { externalId: "../a b/?#&%ü" }), "https://hr.example/p/..%2Fa%20b%2F%3F%23%26%25%C3%BC");
  assert.equal(photoAddress(link, {}), "");
  assert.equal(photoAddress("", { externalId: "a" }), "");
  assert.equal(photoAddress("javascript:alert(1)//{externalId}", { externalId: "a" }), "");
});
