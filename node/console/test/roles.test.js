// A node's page as keys of each role use it, and what the browser keeps of a key.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { texts } from "../web/texts.js";
import { choosePhoto, launch, photo, visit } from "./browser.js";
import { createKey, setTenant, startCluster } from "./cluster.js";
import { fact, folderOf, go, importFolder, makeGallery, pages, signIn, sound } from "./steps.js";

/** @type {Awaited<ReturnType<typeof startCluster>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("./cluster.js").Keys} */
let admin;
let people = "";
let apiKey = "";

const atNode = (n = 0) => `${cluster.info.base_urls[n]}/console/`;

/** @param {number} [n] */
async function open(n) {
  const v = await visit(browser, atNode(n), { viewport: { width: 1000, height: 800 } });
  v.page.setDefaultTimeout(15_000);
  return v;
}

/** @param {import("playwright-core").Page} page */
const shown = (page) => page.locator("nav a").allTextContents();

before(async () => {
  browser = await launch();
  cluster = await startCluster();
  setTenant(cluster.dir, "accessKeys=20");
  admin = { accessKey: cluster.info.access_key, secretKey: cluster.info.secret_key };
  people = folderOf({ "obama/1.jpg": "face_recognition/obama.jpg", "biden/1.jpg": "face_recognition/biden.jpg" });
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
  rmSync(people, { recursive: true, force: true });
});

test("a wrong secret is refused in plain words", async () => {
  const v = await open();
  await signIn(v.page, { ...admin, secretKey: "wrong" });
  await v.page.getByText(texts.signIn.refused).waitFor();
  await sound(v, "the refusal");
  await v.close();
});

/** refusals returns what the audit log has of answers 403, as text. */
async function refusals() {
  const v = await open();
  await signIn(v.page, admin);
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  const list = await v.page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    const { records } = await (await import(from)).client.value.auditRecords({ status: 403 });
    return records.map((/** @type {any} */ r) => `${r.operation} ${r.reason}`);
  });
  await v.close();
  return list;
}

test("an administrator sees all but the cluster", async () => {
  const v = await open();
  await signIn(v.page, admin);
  await makeGallery(v.page, "staff");
  assert.deepEqual(await shown(v.page), [texts.frame.try, texts.frame.galleries, texts.frame.import, texts.frame.duplicates, texts.frame.review, texts.frame.erase, texts.frame.lab, texts.frame.audit]);
  await importFolder(v.page, people);
  assert.equal(await fact(v.page, texts.import.outcomes.registered ?? ""), "2");
  apiKey = await v.page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    return (await import(from)).application.value.apiKey;
  });
  for (const [path, title] of pages.filter(([path]) => path !== "cluster")) {
    await go(v.page, path, title);
    await sound(v, path);
  }
  await v.close();
});

test("a biometric key enrols, finds and removes", async () => {
  const v = await open();
  await signIn(v.page, { ...createKey(cluster.dir, "biometric"), apiKey });
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  assert.deepEqual(await shown(v.page), [texts.frame.try, texts.frame.galleries, texts.frame.import, texts.frame.lab]);
  await choosePhoto(v.page, texts.try.choose, photo("face_recognition/obama2.jpg"));
  await v.page.getByRole("button", { name: texts.try.search, exact: true }).click();
  await v.page.getByRole("cell", { name: /^obama/ }).waitFor();
  const more = folderOf({ "astronaut/1.png": "scikit-image/astronaut.png" });
  await importFolder(v.page, more);
  rmSync(more, { recursive: true });
  assert.equal(await fact(v.page, texts.import.outcomes.registered ?? ""), "1");
  await go(v.page, "galleries", texts.galleries.subjects);
  await v.page.getByLabel(texts.galleries.externalId).fill("astronaut");
  await v.page.getByRole("button", { name: texts.galleries.find }).click();
  await v.page.getByText(texts.galleries.entries("1"), { exact: true }).waitFor();
  await v.page.getByRole("button", { name: texts.galleries.remove }).click();
  await v.page.locator("dialog").getByRole("button", { name: texts.galleries.remove }).click();
  await v.page.getByText(texts.galleries.noSuch).waitFor();
  await sound(v, "a biometric key's list");
  await v.close();
});

test("each role is offered what it can use, and nothing is probed", async () => {
  const f = texts.frame;
  for (const [role, pages] of /** @type {const} */ ([
    ["admin", [f.try, f.galleries, f.import, f.duplicates, f.review, f.erase, f.lab, f.audit]],
    ["read-only", [f.try, f.galleries, f.lab]],
    ["enrol-only", [f.import]],
    ["search-only", [f.try]],
    ["reviewer", [f.review]],
    ["auditor", [f.audit]],
  ])) {
    const v = await open();
    await signIn(v.page, { ...createKey(cluster.dir, role, "ann"), apiKey: role === "auditor" ? "" : apiKey });
    await v.page.getByRole("navigation").waitFor();
    assert.deepEqual(await shown(v.page), pages, role);
    await v.page.getByText(`${role} ann`).waitFor();
    for (const name of pages) {
      await v.page.getByRole("link", { name, exact: true }).click();
      await v.page.waitForLoadState("networkidle");
    }
    assert.equal(await v.page.getByRole("alert").count(), 0, role);
    assert.deepEqual(v.faults, [], role);
    await v.close();
  }
  assert.deepEqual(await refusals(), []);
});

test("a read-only key looks, and changes nothing", async () => {
  const v = await open();
  await signIn(v.page, { ...createKey(cluster.dir, "read-only"), apiKey });
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  await choosePhoto(v.page, texts.try.choose, photo("face_recognition/obama2.jpg"));
  await v.page.getByRole("button", { name: texts.try.search, exact: true }).click();
  await v.page.getByRole("cell", { name: /^obama/ }).waitFor();
  await go(v.page, "galleries", texts.galleries.subjects);
  await v.page.getByRole("cell", { name: /^obama/ }).waitFor();
  assert.equal(await v.page.getByRole("button", { name: texts.galleries.remove }).count(), 0);
  await sound(v, "a read-only key's galleries");
  await v.close();
});

test("a door's key searches, and an enroller's enrols", async () => {
  const door = await open();
  await signIn(door.page, { ...createKey(cluster.dir, "search-only"), apiKey });
  await choosePhoto(door.page, texts.try.choose, photo("face_recognition/obama2.jpg"));
  await door.page.getByRole("button", { name: texts.try.search, exact: true }).click();
  await door.page.getByRole("cell", { name: /^obama/ }).waitFor();
  assert.equal(await door.page.getByRole("heading", { name: texts.try.compare }).count(), 0);
  await sound(door, "a door's search");
  await door.close();
  const v = await open();
  await signIn(v.page, { ...createKey(cluster.dir, "enrol-only"), apiKey });
  const more = folderOf({ "astronaut/1.png": "scikit-image/astronaut.png", "obama/1.jpg": "face_recognition/obama.jpg" });
  await importFolder(v.page, more);
  rmSync(more, { recursive: true });
  assert.equal(await fact(v.page, texts.import.outcomes.registered ?? ""), "1");
  assert.equal(await fact(v.page, texts.import.outcomes.skipped ?? ""), "1");
  await sound(v, "an enroller's import");
  await v.close();
  assert.deepEqual(await refusals(), []);
});

test("an application key that is none is refused at the sign-in", async () => {
  const v = await open();
  for (const keys of [admin, createKey(cluster.dir, "biometric", "ben")]) {
    await signIn(v.page, { ...keys, apiKey: "nonsense" });
    await v.page.getByText(texts.signIn.refusedApplication).waitFor();
    assert.equal(await v.page.getByRole("navigation").count(), 0);
  }
  await sound(v, "the refusal of an application key");
  await v.close();
});

/**
 * held returns all that the page and the browser keep of its origin, as text.
 * @param {import("playwright-core").Page} page
 */
async function held(page) {
  const kept = await page.evaluate(async () => {
    const texts = [document.documentElement.outerHTML, document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href];
    for (const input of document.querySelectorAll("input")) texts.push(input.value);
    for (const { name } of await indexedDB.databases()) {
      const open = indexedDB.open(name ?? "");
      const db = await new Promise((resolve, reject) => Object.assign(open, { onsuccess: () => resolve(open.result), onerror: () => reject(open.error) }));
      for (const store of db.objectStoreNames) {
        const all = db.transaction(store).objectStore(store).getAll();
        await new Promise((resolve) => (all.onsuccess = resolve));
        texts.push(JSON.stringify(all.result, (_, value) => (value instanceof Map ? [...value] : value)));
      }
      db.close();
    }
    return texts.join("\n");
  });
  const cdp = await page.context().newCDPSession(page);
  const pieces = [kept];
  cdp.on("HeapProfiler.addHeapSnapshotChunk", ({ chunk }) => void pieces.push(chunk));
  await cdp.send("HeapProfiler.collectGarbage");
  await cdp.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  return pieces.join("");
}

test("who stays signed in is so after a reload, and the secret is nowhere", async () => {
  const v = await open();
  await signIn(v.page, { ...admin, stay: true });
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  const before = await held(v.page);
  assert.ok(before.includes(admin.accessKey), "nothing was looked at");
  assert.ok(!before.includes(admin.secretKey), "the page holds the secret after the sign-in");
  await v.page.reload();
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  assert.ok(!(await held(v.page)).includes(admin.secretKey), "the page holds the secret after a reload");
  const exported = await v.page.evaluate(async () => {
    const from = "/console/keep.js"; // not known to the types
    const { credentials } = await (await import(from)).kept("credentials");
    const keys = Object.values(credentials).filter((value) => value instanceof CryptoKey);
    return Promise.all(keys.map((key) => crypto.subtle.exportKey("raw", key).then(() => true, () => false)));
  });
  assert.deepEqual(exported, [false], "the key can be exported");
  await v.page.getByRole("button", { name: texts.frame.signOut }).click();
  await v.page.getByLabel(texts.signIn.secretKey).waitFor();
  await v.page.reload();
  await v.page.getByLabel(texts.signIn.secretKey).waitFor();
  assert.ok(!(await held(v.page)).includes(admin.accessKey), "the browser keeps the key");
  await v.close();
});

test("who doesn't stay is signed out by a reload", async () => {
  const v = await open();
  await signIn(v.page, admin);
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  await v.page.reload();
  await v.page.getByLabel(texts.signIn.secretKey).waitFor();
  await v.close();
});

/** twoTabs opens two tabs of a browser that are signed in. */
async function twoTabs() {
  const v = await open();
  await v.page.context().clock.install();
  await signIn(v.page, { ...admin, stay: true });
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  const other = await v.page.context().newPage();
  await other.goto(atNode());
  await other.getByRole("heading", { name: texts.try.title }).waitFor();
  return { v, other };
}

test("who signs out in one tab is signed out in all, also where an import runs", async () => {
  const { v, other } = await twoTabs();
  await v.page.evaluate(async () => void ((await import(String("/console/presence.js"))).working.value = true));
  await v.page.context().clock.fastForward("00:03"); // a touch counts once a second
  await other.getByRole("button", { name: texts.frame.signOut }).evaluate((/** @type {HTMLElement} */ b) => b.click()); // as a screen reader does: no touch goes before
  for (const page of [v.page, other]) {
    await page.getByLabel(texts.signIn.secretKey).waitFor();
    assert.equal(await page.getByRole("navigation").count(), 0);
  }
  await v.page.getByText(texts.signIn.wasAway).waitFor();
  await sound(v, "a sign-in after a sign-out elsewhere");
  await v.close();
});

test("ten minutes without a touch sign all tabs out", async () => {
  const { v, other } = await twoTabs();
  const { clock } = v.page.context();
  await clock.fastForward("09:00");
  await other.mouse.move(100, 100);
  await other.mouse.move(200, 200);
  await clock.fastForward("09:00"); // nine minutes after the touch
  for (const page of [v.page, other]) assert.ok(await page.getByRole("navigation").isVisible(), "a tab is signed out while another one is used");
  await clock.fastForward("01:10");
  for (const page of [v.page, other]) await page.getByText(texts.signIn.wasAway).waitFor();
  await v.page.reload();
  await v.page.getByLabel(texts.signIn.secretKey).waitFor();
  assert.ok(!(await held(v.page)).includes(admin.accessKey), "the browser keeps the key");
  await v.close();
});

// The last one: it takes a node away.
test("each page of a node that dies says so", async () => {
  const v = await open(2);
  await signIn(v.page, { ...admin, stay: true });
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  const all = [];
  for (const [path, title] of pages.filter(([path]) => path !== "cluster")) {
    const page = await v.page.context().newPage();
    await page.goto(`${atNode(2)}#/${path}`);
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    all.push(page);
  }
  process.kill(cluster.info.nodes[2]?.pid ?? 0, "SIGKILL");
  for (const page of all) await page.getByText(texts.frame.goneNode).waitFor();
  await v.close();
});
