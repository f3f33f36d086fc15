// The pages of the interface in a real Chromium, from a real cluster: each operation, a search by a photo,
// hostile documents and answers.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { texts as t } from "../docs/texts.js";
import { texts as shared } from "../web/texts.js";
import { accessibility, launch, overflow, visit } from "./browser.js";
import { startCluster, startConsole } from "./cluster.js";
import { description, photoOf } from "./interface.js";

/** @type {Awaited<ReturnType<typeof startCluster>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;

before(async () => {
  browser = await launch();
  cluster = await startCluster();
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
});

/** node returns the address of an operation's page on a node. @param {string} [id] */
const node = (id = "") => `${cluster.info.base_urls[0]}/docs/#/${id}`;

/**
 * signIn fills in the form of a node's page.
 * @param {import("./browser.js").Visit} v
 */
async function signIn({ page }) {
  await page.getByText(t.signInFirst).click();
  await page.getByLabel(shared.signIn.accessKey, { exact: true }).fill(cluster.info.access_key);
  await page.getByLabel(shared.signIn.secretKey).fill(cluster.info.secret_key);
  await page.getByLabel(shared.signIn.stay).check();
  await page.getByRole("button", { name: shared.signIn.signIn }).click();
  await page.getByText(t.signInFirst).waitFor({ state: "detached" });
}

/**
 * sent sends what the form has, and returns the status and the answer's text.
 * @param {import("playwright-core").Page} page
 */
async function sent(page) {
  await page.getByRole("button", { name: t.send("").trim() }).click();
  const answer = page.locator("[aria-live]");
  await answer.getByText(t.status).waitFor();
  const status = Number(await answer.locator("strong").first().textContent());
  assert.match((await answer.locator("code").first().textContent()) ?? "", /^[0-9a-f]{32}$/, "request id");
  const body = answer.locator("pre");
  return { status, text: (await body.count()) ? ((await body.textContent()) ?? "") : "" };
}

test("each operation has its page", async () => {
  const v = await visit(browser, node());
  const operations = Object.entries(description().paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, o]) => ({ address: `${method.toUpperCase()} ${path}`, .../** @type {any} */ (o) })),
  );
  const list = v.page.getByRole("navigation", { name: t.operations });
  await list.getByRole("link").first().waitFor();
  const links = await list.getByRole("link").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
  assert.deepEqual(links.toSorted(), operations.map((o) => `#/${o.operationId}`).toSorted());
  for (const o of operations) {
    await v.page.goto(node(o.operationId));
    await v.page.getByRole("heading", { level: 1, name: o.summary, exact: true }).waitFor();
    const text = (await v.page.locator("main").innerText()) ?? "";
    assert.ok(text.includes(o.address), `${o.operationId}: ${o.address}`);
    for (const status of Object.keys(o.responses)) assert.ok(text.includes(status), `${o.operationId}: ${status}`);
    assert.equal((await v.page.locator("main > header .badge").count()) === 1, !!o["x-facet-extension"], o.operationId);
  }
  assert.deepEqual(v.faults, []);
  await v.close();
});

test("a list is searched, and a table follows references", async () => {
  const v = await visit(browser, node("verifyFace"));
  const list = v.page.getByRole("navigation", { name: t.operations });
  await v.page.getByLabel(t.search).fill("photo SHOW");
  await list.getByText("Create a gallery").waitFor({ state: "detached" });
  assert.ok((await list.innerText()).includes("Whom does a photo show?"));
  const tables = v.page.locator("#body ~ .scroll");
  assert.equal(await tables.count(), 4, "a table for each form");
  const rows = await tables.first().getByRole("rowheader").allInnerTexts();
  assert.deepEqual(rows.map((r) => r.split("\n")[0]), ["face", "probe"]);
  assert.match(await tables.first().innerText(), /base64/);
  await v.close();
});

test("a person is enrolled and found by photos", async () => {
  const v = await visit(browser, node("createGallery"));
  const { page } = v;
  await signIn(v);
  const hostile = '<img src="x" onerror="alert(1)"><b>staff</b>';
  await page.locator("textarea").fill(JSON.stringify({ name: hostile, description: "", faceMinimumQualityScore: 0.45, size: 1000 }));
  const made = await sent(page);
  assert.equal(made.status, 200);
  assert.ok(made.text.includes(JSON.stringify(hostile)), "the answer is shown as text");
  assert.equal(await page.locator("main img, main b").count(), 0, "the answer is shown as markup");

  await page.goto(node("registerSubject"));
  await page.getByRole("option", { name: hostile }).waitFor({ state: "attached" }); // its application is known
  await page.reload(); // the key stays
  await page.locator("select").waitFor();
  await page.locator("textarea").fill("{}");
  await page.locator("form input[type=file]").setInputFiles(photoOf("obama.jpg"));
  assert.ok((await page.locator("textarea").inputValue()).includes('"face": "@obama.jpg"'));
  const registered = await sent(page);
  assert.equal(registered.status, 201, registered.text);

  await page.goto(node("searchFaces"));
  await page.locator("textarea").fill("{}");
  await page.locator("form input[type=file]").first().setInputFiles(photoOf("obama2.jpg"));
  const found = await sent(page);
  assert.equal(found.status, 200, found.text);
  assert.equal(JSON.parse(found.text).candidates[0].id, JSON.parse(registered.text).id);
  await programs(page, JSON.parse(registered.text).id);

  await page.goto(node("unregisterSubject"));
  await page.getByLabel("subjectId").fill("../../api/galleries");
  assert.equal((await sent(page)).status, 404, "a path parameter stays one segment");
  await page.getByLabel("subjectId").fill(JSON.parse(registered.text).id);
  assert.deepEqual(await sent(page), { status: 204, text: "" });
  assert.deepEqual(v.faults.filter((f) => !/status of 40[04]/.test(f)), []);
  await v.close();
});

/**
 * programs runs the search that the page shows in programs, and sees the person found.
 * @param {import("playwright-core").Page} page
 * @param {string} id
 */
async function programs(page, id) {
  const root = join(import.meta.dirname, "../../..");
  copyFileSync(photoOf("obama2.jpg"), join(cluster.dir, "obama2.jpg"));
  copyFileSync(join(cluster.dir, "dev.json"), join(cluster.dir, "profile.json"));
  const ca = JSON.parse(readFileSync(join(cluster.dir, "dev.json"), "utf8"));
  writeFileSync(join(cluster.dir, "ca.pem"), ca.ca ?? readFileSync(ca.ca_file, "utf8"));
  await page.getByText(t.asCode).click();
  const env = { ...process.env, ACCESS_KEY: cluster.info.access_key, SECRET_KEY: cluster.info.secret_key };
  /** @type {Record<string, (code: string) => [string, string[]]>} */
  const run = {
    curl: (code) => ["bash", ["-c", code]],
    Python: (code) => [join(root, "assets/venv/bin/python"), ["-c", code]],
    JavaScript: (code) => ["node", ["--input-type=module", "-e", code.replace("facet-client/node", join(root, "clients/js/src/node.js"))]],
  };
  for (const [name, command] of Object.entries(run)) {
    await page.getByRole("button", { name, exact: true }).click();
    const code = (await page.locator("#try ~ details pre").textContent()) ?? "";
    const [program, args] = command(code);
    const { stdout } = await promisify(execFile)(program, args, { cwd: cluster.dir, env });
    assert.ok(stdout.includes(id), `${name}:\n${code}\n${stdout}`);
  }
}

test("a key leaves for no other host", async () => {
  const v = await visit(browser, node("getHealth"));
  await signIn(v);
  // A document that names another host, as its server and in a path.
  const lie = description();
  lie.servers = [{ url: "https://other.example" }];
  lie.paths = { "//other.example/v1.1/health": lie.paths["/v1.1/health"] };
  await v.page.route("**/openapi.json", (route) => route.fulfill({ json: lie }));
  /** @type {string[]} */
  const asked = [];
  await v.page.route("**/*health*", (route) => (asked.push(route.request().url()), route.continue()));
  await v.page.reload();
  await v.page.getByText("//other.example").first().waitFor();
  await v.page.getByRole("button", { name: t.send("").trim() }).click();
  await v.page.locator("[aria-live] strong").or(v.page.getByRole("alert")).first().waitFor();
  for (const url of asked) assert.equal(new URL(url).host, new URL(cluster.info.base_urls[0]).host, url);
  assert.deepEqual(v.faults.filter((f) => !/status of 40/.test(f)), []);
  await v.close();
});

test("facet console's page needs no key, at any width, by keyboard", async () => {
  const { address, stop } = await startConsole("--dir", cluster.dir);
  const v = await visit(browser, address);
  const { page } = v;
  await page.goto(`${new URL(address).origin}/docs/#/listSubjects`);
  for (const id of ["", "searchFaces", "listSubjects"]) {
    await page.goto(`${new URL(address).origin}/docs/#/${id}`);
    await page.locator("h1").waitFor();
    for (const d of await page.locator("details").all()) await d.evaluate((e) => e.setAttribute("open", ""));
    for (const [colorScheme, width] of /** @type {const} */ ([["light", 320], ["dark", 1280]])) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 700 });
      assert.ok((await overflow(page)) <= 0, `${id} scrolls sideways at ${width} pixels`);
      assert.deepEqual(await accessibility(page), [], `${id}, ${colorScheme}, ${width} pixels`);
    }
  }
  await page.goto(`${new URL(address).origin}/docs/#/listGalleries`);
  const button = page.getByRole("button", { name: t.send("GET") });
  await button.waitFor();
  for (let i = 0; i < 80 && !(await button.evaluate((e) => e === document.activeElement)); i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator("[aria-live]").getByText("200").waitFor();
  assert.deepEqual(v.faults, []);
  await v.close();
  await stop();
});
