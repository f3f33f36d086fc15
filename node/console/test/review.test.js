// Reviews of doubtful verifications, role by role, with real faces and a real Chromium.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { texts } from "../web/texts.js";
import { launch, photo, visit } from "./browser.js";
import { createKey, saveProfile, setTenant, startCluster, startConsole } from "./cluster.js";
import { areEqual, folderOf, go, importFolder, makeGallery, signIn, sound } from "./steps.js";

/** @typedef {import("playwright-core").Page} Page */
/** @typedef {import("playwright-core").Locator} Locator */
/** @typedef {import("./browser.js").Visit} Visit */

const t = texts.review;

/** @type {Awaited<ReturnType<typeof startCluster>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {Visit} the administrator's */
let v;
/** @type {{ path: string, referrer: string | undefined }[]} */
const asked = [];
let people = "";
let apiKey = "";

// Stands for the place where an organisation shows the photos of its people.
const photos = createServer((request, response) => {
  if (request.url !== "/favicon.ico") asked.push({ path: request.url ?? "", referrer: request.headers.referer });
  response.writeHead(200, { "content-type": "image/jpeg" }).end(readFileSync(photo("face_recognition/obama.jpg")));
});

before(async () => {
  browser = await launch();
  cluster = await startCluster();
  setTenant(cluster.dir, "accessKeys=20");
  await new Promise((resolve) => photos.listen(0, "127.0.0.1", () => resolve(undefined)));
  v = await visit(browser, cluster.address, { viewport: { width: 1000, height: 800 } });
  v.page.setDefaultTimeout(30_000);
  await makeGallery(v.page, "staff");
  people = folderOf({ "M-1041/1.jpg": "face_recognition/obama.jpg" });
  await importFolder(v.page, people);
  apiKey = await v.page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    return (await import(from)).application.value.apiKey;
  });
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
  photos.close();
  rmSync(people, { recursive: true, force: true });
});

/** setBand has every verification of the subject end in the review band. @param {number} reviewVerdicts */
const setBand = (reviewVerdicts) =>
  v.page.evaluate(async (verdicts) => {
    const from = "/console/state.js"; // not known to the types
    const { client, application } = await import(from);
    await client.value.updateApplication(application.value.id, { verifyThreshold: 9990, reviewThreshold: 5000, reviewVerdicts: verdicts });
  }, reviewVerdicts);

let doubts = 0;

/**
 * doubt verifies another photo of the subject for each reference, each in a quality of its own, and returns the cases.
 * @param {(string | undefined)[]} references
 * @returns {Promise<string[]>}
 */
const doubt = (references) =>
  v.page.evaluate(
    async ([face, before, ...names]) => {
      const from = "/console/state.js"; // not known to the types
      const c = (await import(from)).inGallery.value;
      const picture = await createImageBitmap(new Blob([Uint8Array.from(atob(face ?? ""), (x) => x.charCodeAt(0))]));
      const canvas = new OffscreenCanvas(picture.width, picture.height);
      canvas.getContext("2d")?.drawImage(picture, 0, 0);
      /** @type {string[]} */
      const opened = [];
      for (const [i, reference] of names.entries()) {
        const probe = await canvas.convertToBlob({ type: "image/jpeg", quality: 1 - 0.01 * (Number(before) + i) });
        const verify = () =>
          c.verify("externalId:M-1041", probe, { reference }).then(
            () => false,
            (/** @type {any} */ e) => (e.reason === "Doubtful" ? opened.push(e.caseId) : Promise.reject(e)),
          );
        for (const late = Date.now() + 10_000; !(await verify()); ) {
          if (Date.now() > late) throw new Error("verified"); // a node knows the band after two seconds
        }
      }
      return opened;
    },
    [readFileSync(photo("face_recognition/obama2.jpg")).toString("base64"), String((doubts += references.length) - references.length), ...references],
  );

const facet = (/** @type {string[]} */ ...args) =>
  execFileSync(join(import.meta.dirname, "../../../bin/facet"), [...args, "--dir", cluster.dir], { encoding: "utf8" });

/** The keys that were made. @type {Map<string, ReturnType<typeof createKey>>} */
const keys = new Map();

/**
 * keyOf returns the key of a role and a holder.
 * @param {Parameters<typeof createKey>[1]} role
 * @param {string} [holder]
 */
function keyOf(role, holder) {
  const key = keys.get(`${role} ${holder}`) ?? createKey(cluster.dir, role, holder);
  keys.set(`${role} ${holder}`, key);
  return key;
}

/**
 * as opens a node's page with the key of a role and a holder.
 * @param {Parameters<typeof createKey>[1]} role
 * @param {string} [holder]
 */
async function as(role, holder) {
  const other = await visit(browser, `${cluster.info.base_urls[0]}/console/`, { viewport: { width: 1000, height: 800 } });
  other.page.setDefaultTimeout(30_000);
  await signIn(other.page, { ...keyOf(role, holder), apiKey });
  await other.page.getByRole("navigation").waitFor();
  return other;
}

/** @param {Page} page @param {string} reference */
const row = (page, reference) => page.locator("tbody tr").filter({ has: page.getByRole("cell", { name: new RegExp(`^${reference}( |$)`) }) });

/** @param {Page} page @param {"open" | "closed"} state */
const show = (page, state) => page.getByRole("combobox", { name: t.show }).selectOption(state);

const button = (/** @type {Locator} */ of, /** @type {string} */ name) => of.getByRole("button", { name, exact: true });

/**
 * look opens both photos of a case by the keyboard alone. The buttons of a verdict appear then.
 * @param {Page} page
 * @param {string} reference
 */
async function look(page, reference) {
  const of = row(page, reference);
  for (const name of ["M-1041", reference]) {
    await of.getByText(texts.duplicates.openBoth).waitFor();
    assert.equal(await of.getByRole("button").count(), 0, "a verdict before both photos were opened");
    const [tab] = await Promise.all([page.context().waitForEvent("page"), of.getByRole("link", { name: texts.duplicates.photoOf(name) }).press("Enter")]);
    await tab.waitForLoadState();
    assert.equal(await tab.evaluate(() => window.opener), null, "the photo's page knows the console");
    await tab.close();
  }
  await button(of, t.same).waitFor();
  await of.getByText(texts.duplicates.unseen).waitFor();
  await of.getByText(t.scoreAfter, { exact: true }).waitFor();
  assert.equal(await of.getByText(t.below(9990)).count(), 0, "the score before the verdict");
  await areEqual(of, 2);
  return of;
}

test("without a photo link there are cases and no verdict", async () => {
  await setBand(1);
  await doubt(["visit 1", undefined]);
  await go(v.page, "review", t.title);
  await v.page.getByRole("heading", { name: t.found(2, "open") }).waitFor();
  await v.page.getByText(t.noLink).waitFor();
  assert.equal(await v.page.locator("tbody").getByRole("button").count(), 0, "a verdict without photos");
  assert.equal(await v.page.locator("tbody").getByRole("link").count(), 0);
  await row(v.page, "visit 1").getByText(t.below(9990)).waitFor();
  await sound(v, "reviews without a photo link");
});

test("a case without a reference has no verdict", async () => {
  const address = photos.address();
  const port = typeof address === "object" ? address?.port : 0;
  facet("gallery", "update", "staff", "--photo-link", `http://127.0.0.1:${port}/photos/{externalId}.jpg`);
  await v.page.reload();
  const of = row(v.page, t.noReference);
  await of.getByText(t.noPhoto).waitFor();
  assert.equal(await of.getByRole("button").count(), 0);
  assert.equal(await of.getByRole("link").count(), 1, "a link to the subject's photo");
  await row(v.page, "visit 1").getByText(texts.duplicates.openBoth).waitFor();
});

test("a reviewer sees this page only, and closes a case by the keyboard", async () => {
  const anna = await as("reviewer", "anna");
  await anna.page.getByRole("heading", { level: 1, name: t.title }).waitFor();
  assert.deepEqual(await anna.page.locator("nav a").allTextContents(), [texts.frame.review]);
  asked.length = 0;
  const of = await look(anna.page, "visit 1");
  assert.deepEqual(asked, [{ path: "/photos/M-1041.jpg", referrer: undefined }, { path: "/photos/visit%201.jpg", referrer: undefined }]);
  await sound(anna, "a case with its verdict");
  await anna.page.setViewportSize({ width: 360, height: 800 });
  const box = await anna.page.getByRole("button", { name: t.different, exact: true }).boundingBox();
  assert.ok(box && box.x >= 0 && box.x + box.width <= 360, `a verdict is cut off: ${JSON.stringify(box)}`);
  await anna.page.setViewportSize({ width: 1000, height: 800 });
  await button(of, t.different).press("Enter");
  await of.getByText(t.states.different ?? "", { exact: true }).waitFor();
  await of.getByText(t.below(9990)).waitFor();
  await of.getByRole("button").first().waitFor({ state: "detached" });
  await show(anna.page, "closed");
  await anna.page.getByRole("heading", { name: t.found(1, "closed") }).waitFor();
  await row(anna.page, "visit 1").getByText(/^Different people: anna, /).waitFor();
  await sound(anna, "closed cases");
  const refused = await anna.page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    const c = (await import(from)).inGallery.value;
    const photo = new Blob(["x"]);
    const calls = [c.applications(), c.galleries(), c.subjects(), c.search(photo), c.verify("externalId:M-1041", photo), c.extract(photo), c.register(photo), c.duplicates()];
    return Promise.all(calls.map((p) => p.then(() => 200, (/** @type {any} */ e) => e.status)));
  });
  assert.deepEqual(refused, Array(8).fill(403));
  await anna.close();
});

test("two people decide, each alone", async () => {
  await setBand(2);
  await doubt(["visit 2"]);
  const [anna, ben, nobody] = [await as("reviewer", "anna"), await as("reviewer", "ben"), await as("reviewer")];
  await row(anna.page, "visit 2").getByText(t.needed(2, 0)).waitFor();
  const first = await look(anna.page, "visit 2");
  await button(first, t.same).press("Enter");
  await first.getByText(t.waits).waitFor();
  await first.getByText(/^Same person: anna, /).waitFor();
  assert.equal(await first.getByRole("button").count(), 0, "one person decides twice");
  await sound(anna, "a case that waits for another person");
  await show(ben.page, "closed");
  await show(ben.page, "open"); // reads the list again
  await row(ben.page, "visit 2").getByText(t.needed(2, 1)).waitFor();
  assert.ok(!((await row(ben.page, "visit 2").textContent()) ?? "").includes("anna"), "the second person sees the first verdict");
  await button(await look(nobody.page, "visit 2"), t.same).press("Enter");
  await row(nobody.page, "visit 2").getByRole("alert").getByText(/holder/).waitFor();
  const second = await look(ben.page, "visit 2");
  await button(second, t.different).press("Enter");
  await second.getByText(t.states.disputed ?? "").waitFor();
  await show(anna.page, "closed");
  await row(anna.page, "visit 2").getByText(/^Different people: ben, /).waitFor();
  for (const other of [anna, ben, nobody]) {
    assert.deepEqual(other.faults, []);
    await other.close();
  }
});

test("a reviewer decides through facet console", async () => {
  await setBand(1);
  await doubt(["visit 4"]);
  const { address, stop } = await startConsole("--profile", saveProfile(cluster, keyOf("reviewer", "anna")), "--api-key", apiKey);
  const anna = await visit(browser, address, { viewport: { width: 1000, height: 800 } });
  anna.page.setDefaultTimeout(30_000);
  await anna.page.getByRole("heading", { level: 1, name: t.title }).waitFor();
  assert.deepEqual(await anna.page.locator("nav a").allTextContents(), [texts.frame.review]);
  const of = await look(anna.page, "visit 4");
  await button(of, t.same).press("Enter");
  await of.getByText(t.states.same ?? "", { exact: true }).waitFor();
  await anna.page.reload();
  await show(anna.page, "closed");
  await row(anna.page, "visit 4").getByText(/^Same person: anna, /).waitFor();
  await sound(anna, "reviews through facet console");
  await anna.close();
  await stop();
});

test("other roles see no page of cases, and the service refuses lists and verdicts", async () => {
  const [caseId] = await doubt(["visit 3"]);
  for (const role of /** @type {const} */ (["biometric", "read-only", "enrol-only", "search-only", "auditor"])) {
    const other = await as(role);
    assert.equal(await other.page.getByRole("link", { name: texts.frame.review }).count(), 0, role);
    const status = await other.page.evaluate(async (id) => {
      const from = "/console/state.js"; // not known to the types
      const c = (await import(from)).inGallery.value;
      return Promise.all([c.casePage(), c.case(id), c.decide(id, "same")].map((p) => p.then(() => 200, (/** @type {any} */ e) => e.status)));
    }, caseId ?? "");
    const verifies = role === "biometric" || role === "read-only"; // and may ask how its case ended
    assert.deepEqual(status, [403, verifies ? 200 : 403, 403], role);
    await other.close();
  }
});

test("many cases come page by page", async () => {
  await doubt(Array.from({ length: 50 }, (_, i) => `many ${i}`));
  await v.page.reload();
  await v.page.getByRole("heading", { name: t.found(52, "open") }).waitFor();
  const seen = await v.page.locator("tbody tr").allTextContents();
  await v.page.getByRole("button", { name: t.next, exact: true }).click();
  await row(v.page, "many 49").waitFor();
  seen.push(...(await v.page.locator("tbody tr").allTextContents()));
  assert.equal(new Set(seen).size, 52, "a case is on two pages, or on none");
  assert.ok(await v.page.getByRole("button", { name: t.next, exact: true }).isDisabled());
  await v.page.getByRole("button", { name: t.previous, exact: true }).click();
  await row(v.page, "many 0").waitFor();
  assert.deepEqual(v.faults, []);
});

test("an erased subject leaves nothing of its cases", async () => {
  await v.page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    await (await import(from)).inGallery.value.unregister("externalId:M-1041");
  });
  await v.page.reload();
  await v.page.getByText(t.none).waitFor();
  await show(v.page, "closed");
  await v.page.getByText(t.states.erased ?? "").first().waitFor();
  const text = (await v.page.locator("main").textContent()) ?? "";
  assert.ok(!/M-1041|visit|many|anna/.test(text), text);
});
