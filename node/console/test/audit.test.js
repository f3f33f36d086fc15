// The audit log as an auditor and an administrator see it, with a real cluster and a real Chromium.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { texts } from "../web/texts.js";
import { choosePhoto, launch, photo, visit } from "./browser.js";
import { createKey, setTenant, startCluster } from "./cluster.js";
import { folderOf, go, importFolder, makeGallery, saved, signIn, sound } from "./steps.js";

const t = texts.audit;

/** @type {Awaited<ReturnType<typeof startCluster>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("./browser.js").Visit} */
let v;
/** @type {import("./cluster.js").Keys} */
let auditor;
let folder = "";

const facet = (/** @type {string[]} */ ...args) => execFileSync(join(import.meta.dirname, "../../../bin/facet"), args, { encoding: "utf8" });

/** open signs a key in at a node, in a browser profile of its own. @param {import("./cluster.js").Keys} keys */
async function open(keys) {
  const visited = await visit(browser, `${cluster.info.base_urls[0]}/console/`, { viewport: { width: 1200, height: 900 } });
  visited.page.setDefaultTimeout(15_000);
  await signIn(visited.page, { ...keys, stay: true });
  return visited;
}

const admin = () => ({ accessKey: cluster.info.access_key, secretKey: cluster.info.secret_key });
const isProven = () => v.page.getByText(/in the log that the key has signed/).waitFor();
const rows = () => v.page.locator("tbody tr");

/**
 * changing opens the page anew while one kind of answer is changed, and expects the words.
 * @param {string | RegExp} address
 * @param {(body: Buffer) => Buffer | string} change
 * @param {string} words
 */
async function changing(address, change, words) {
  await v.page.route(address, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: change(await response.body()) });
  });
  await v.page.reload();
  await v.page.getByRole("alert").getByText(words).waitFor();
  assert.equal(await v.page.getByText(/in the log that the key has signed/).count(), 0, "a green tick");
  await v.page.unroute(address);
}

before(async () => {
  browser = await launch();
  cluster = await startCluster();
  auditor = createKey(cluster.dir, "auditor");
  folder = mkdtempSync(join(tmpdir(), "facet-audit-"));
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("an auditor sees this page alone", async () => {
  setTenant(cluster.dir, "--audit", "strict"); // the order is the first record
  v = await open(auditor);
  await v.page.getByRole("heading", { level: 1, name: t.title }).waitFor();
  assert.deepEqual(await v.page.locator("nav a").allTextContents(), [texts.frame.audit]);
  await isProven();
  await sound(v, "a log with one order");
  await v.close();
});

test("searches of others are shown, filtered and proven", async () => {
  const other = await open(admin());
  await makeGallery(other.page, "staff");
  const people = folderOf({ "obama/1.jpg": "face_recognition/obama.jpg", "biden/1.jpg": "face_recognition/biden.jpg" });
  await importFolder(other.page, people);
  rmSync(people, { recursive: true });
  await go(other.page, "try", texts.try.title);
  await choosePhoto(other.page, texts.try.choose, photo("face_recognition/obama2.jpg"));
  await other.page.getByRole("button", { name: texts.try.search, exact: true }).click();
  await other.page.getByRole("cell", { name: /^obama/ }).waitFor();
  await go(other.page, "audit", t.title);
  await other.page.getByText(/in the log that the key has signed/).waitFor();
  await other.close();

  v = await open(auditor);
  await isProven();
  assert.equal(await rows().filter({ hasText: "/api/audit" }).count(), 0, "reads of the log are shown");
  await sound(v, "records");
  await v.page.getByLabel(t.operation).fill("search");
  await v.page.getByLabel(t.status, { exact: true }).fill("200");
  await v.page.getByRole("button", { name: t.show }).press("Enter");
  await v.page.getByText(`${t.proven(1)} ${t.continues}`).waitFor();
  const cells = await rows().first().locator("td").allTextContents();
  assert.match(cells.join("|"), /POST \/v1\.1\/face\/search.*\|200.*\|[0-9a-f]{8}…\|1\|[0-9a-f]{8}…\|proven/);
  const number = rows().first().getByRole("button", { name: t.record });
  await v.page.emulateMedia({ media: "print" });
  assert.ok(await number.isVisible(), "paper lacks the number of a record");
  await v.page.emulateMedia({ media: null });
  await number.press("Enter");
  await v.page.getByText(t.fields["threshold"] ?? "", { exact: true }).waitFor();
  await sound(v, "an open record");
});

test("a record's proof is one that facet audit verify takes", async () => {
  const key = (await v.page.locator("dd.id", { hasText: t.compareKey }).textContent())?.split(" ")[0] ?? "";
  const text = await saved(v.page, () => v.page.getByRole("button", { name: t.saveProof }).press("Enter"));
  const file = join(folder, "1.tlog-proof");
  writeFileSync(file, text);
  assert.match(facet("audit", "verify", file, "--key", key), /^VALID: entry \d+ of facet\//);
  await v.page.keyboard.press("Escape");
  await v.page.locator("dialog").waitFor({ state: "detached" });
});

test("the records of a filter are saved as lines and as a table", async () => {
  const lines = (await saved(v.page, () => v.page.getByRole("button", { name: t.saveLines }).click())).trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(lines.length, 1);
  assert.deepEqual([lines[0].operation, lines[0].status, lines[0].candidates.length, lines[0].candidates[0].score > 7000], ["POST /v1.1/face/search", 200, 1, true]);
  const table = (await saved(v.page, () => v.page.getByRole("button", { name: t.saveTable }).click())).trim().split("\r\n");
  assert.equal(table.length, 2);
  assert.match(table[0] ?? "", /^number,time,kind,operation,status,/);
  assert.match(table[1] ?? "", /^\d+,[-0-9T:.]+Z,request,POST \/v1\.1\/face\/search,200,/);
});

test("new records come by themselves, and older ones by pages", async () => {
  await v.page.reload();
  await isProven();
  await v.page.getByLabel(t.follow).press("Space");
  const program = await visit(browser, cluster.address);
  await program.page.getByRole("heading", { level: 1 }).waitFor();
  await program.page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    const { inGallery } = await import(from);
    for (let i = 0; i < 60; i++) await inGallery.value.tags();
  });
  await v.page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].filter((row) => row.textContent?.includes("/v1.1/tags")).length === 50);
  await v.page.getByText(t.proven(50)).waitFor();
  await v.page.getByLabel(t.follow).press("Space");
  await v.page.getByRole("button", { name: t.older }).press("Enter");
  await v.page.getByText("POST /v1.1/face/search").first().waitFor();
  await isProven();
  await v.page.getByRole("button", { name: t.newer }).press("Enter");
  await v.page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].every((row) => row.textContent?.includes("/v1.1/tags")));
  assert.deepEqual(v.faults, []);
  await program.close();
});

test("a server that changes one byte is seen", async () => {
  await changing(/\/api\/audit\?/, (body) => {
    const page = JSON.parse(body.toString());
    const content = Buffer.from(page.records[7].content, "base64");
    content.writeUInt8((content.at(-1) ?? 0) ^ 1, content.length - 1);
    page.records[7].content = content.toString("base64");
    return JSON.stringify(page);
  }, t.wrong(1));
  assert.equal(await rows().filter({ hasText: t.notProven }).count(), 1);
  await sound(v, "a changed record");
  await changing(/\/api\/audit\/tile\/0\//, (body) => (body.writeUInt8(body.readUInt8(40) ^ 1, 40), body), t.distrust);
  await changing(/\/api\/audit\/checkpoint/, (body) => {
    const lines = body.toString().split("\n");
    lines[1] = String(Number(lines[1]) - 1);
    return lines.join("\n");
  }, "The signature under the log’s checkpoint is wrong.");
  await sound(v, "a changed checkpoint");
});

test("a log that was rolled back is seen until the browser is told to forget", async () => {
  /** @type {Map<string, Buffer>} */
  const old = new Map();
  const address = /\/api\/audit/;
  await v.page.route(address, async (route) => {
    const response = await route.fetch();
    old.set(new URL(route.request().url()).pathname, await response.body());
    await route.fulfill({ response });
  });
  await v.page.reload();
  await isProven();
  await v.page.unroute(address);
  await v.page.reload();
  await isProven();
  await v.page.route(/\/api\/audit\/checkpoint/, (route) => route.fulfill({ body: old.get("/api/audit/checkpoint") ?? "" }));
  await v.page.reload();
  await v.page.getByRole("alert").getByText(/its end was cut off/).waitFor();
  await sound(v, "a log that was rolled back");
  await v.page.getByRole("button", { name: t.forget }).press("Enter");
  await v.page.getByText(t.distrust).waitFor({ state: "detached" });
  await v.page.unrouteAll();
  await v.page.reload();
  await isProven();
});

test("a browser without Ed25519 shows no green tick", async () => {
  const { page, close } = await visit(browser, `${cluster.info.base_urls[0]}/console/`);
  await page.addInitScript(() => {
    const { importKey } = crypto.subtle;
    crypto.subtle.importKey = (/** @type {any[]} */ ...args) => (args[2] === "Ed25519" ? Promise.reject(new DOMException("", "NotSupportedError")) : importKey.apply(crypto.subtle, /** @type {any} */ (args)));
  });
  await page.reload();
  await signIn(page, auditor);
  await page.getByText(t.unsigned).waitFor();
  assert.equal(await page.getByText(/in the log that the key has signed/).count(), 0);
  await close();
});

test("a log that is off says so", async () => {
  setTenant(cluster.dir, "--audit", "off");
  await v.page.waitForTimeout(3000); // nodes look at it every second
  await v.page.reload();
  await v.page.getByText(t.off).waitFor();
  await sound(v, "a log that is off");
});
