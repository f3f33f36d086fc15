// Each role through facet console, beside what a node's page shows it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { texts } from "../web/texts.js";
import { launch, visit } from "./browser.js";
import { createGallery, createKey, saveProfile, setTenant, startCluster, startConsole } from "./cluster.js";
import { pages, signIn, sound } from "./steps.js";

/** @type {Awaited<ReturnType<typeof startCluster>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;
let apiKey = "";

before(async () => {
  browser = await launch();
  cluster = await startCluster();
  setTenant(cluster.dir, "accessKeys=20");
  apiKey = createGallery(cluster.dir, "staff");
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
});

/** @param {import("playwright-core").Page} page */
const shown = (page) => page.locator("nav a").allTextContents();

const f = texts.frame;

/** What the service permits each role, the pages that a key of the role shows, and those without an application's key. */
const roles = /** @type {const} */ ([
  ["biometric", ["search", "enrol", "list"], [f.try, f.galleries, f.import, f.lab], [f.try, f.lab]],
  ["read-only", ["search", "list"], [f.try, f.galleries, f.lab], [f.try, f.lab]],
  ["enrol-only", ["enrol"], [f.import], []],
  ["search-only", ["search"], [f.try], []],
  ["reviewer", ["review"], [f.review], []],
  ["auditor", ["audit"], [f.audit], [f.audit]],
]);

/**
 * permitted returns what the service permits the key of a page.
 * @param {import("playwright-core").Page} page
 */
const permitted = (page) =>
  page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    const c = (await import(from)).inGallery.value;
    const photo = new Blob(["x"]);
    const calls = { search: c.search(photo), enrol: c.register(photo), list: c.subjects(), review: c.casePage(), audit: c.auditFile("key"), manage: c.galleries() };
    const answers = Object.entries(calls).map(([name, answer]) => answer.then(() => name, (/** @type {any} */ e) => (e.status === 403 ? "" : name)));
    return (await Promise.all(answers)).filter(Boolean);
  });

/**
 * onLoopback visits a page of facet console, and ends both.
 * @param {string[]} args
 * @param {(v: import("./browser.js").Visit) => Promise<void>} look
 */
async function onLoopback(args, look) {
  const { address, stop } = await startConsole(...args);
  const v = await visit(browser, address, { viewport: { width: 1000, height: 800 } });
  try {
    v.page.setDefaultTimeout(15_000);
    await v.page.locator(".who code").waitFor();
    await look(v);
    assert.deepEqual(v.faults, []);
  } finally {
    await v.close();
    await stop();
  }
}

for (const closed of [false, true]) {
  test(`facet console locks a page that nobody touches for ten minutes${closed ? ", though it was closed" : ""}`, async () => {
    const profile = saveProfile(cluster, createKey(cluster.dir, "search-only", `locked ${closed}`));
    await onLoopback(["--profile", profile, "--api-key", apiKey], async (v) => {
      const { clock } = v.page.context();
      const address = v.page.url();
      await clock.install();
      await v.page.reload();
      await v.page.locator(".who code").waitFor();
      if (closed) await v.page.goto("about:blank");
      await clock.fastForward("10:10");
      if (closed) await v.page.goto(address);
      await v.page.getByText(f.signedOut).waitFor();
      assert.equal(await v.page.getByRole("navigation").count(), 0);
      v.faults.length = 0; // the session's 401
    });
  });
}

for (const [role, permits, names, alone] of roles) {
  test(`facet console shows a key of the role ${role} what a node's page shows`, async () => {
    const keys = createKey(cluster.dir, role);
    const profile = saveProfile(cluster, keys);
    const v = await visit(browser, `${cluster.info.base_urls[0]}/console/`);
    v.page.setDefaultTimeout(15_000);
    await signIn(v.page, { ...keys, apiKey });
    await v.page.getByRole("navigation").waitFor();
    assert.deepEqual([await shown(v.page), await permitted(v.page)], [names, permits], "at a node");
    assert.equal(await v.page.getByText(texts.frame.lacksApplication).count(), 0);
    await v.close();
    await onLoopback(["--profile", profile, "--api-key", apiKey], async (loopback) => {
      assert.deepEqual([await shown(loopback.page), await permitted(loopback.page)], [names, permits], "on loopback");
      assert.equal(await loopback.page.getByText(texts.frame.lacksApplication).count(), 0);
    });
    if (role === "auditor") return; // needs no application
    await onLoopback(["--profile", profile], async (loopback) => {
      assert.deepEqual(await shown(loopback.page), alone);
      await loopback.page.getByText(texts.frame.startWithApplication).waitFor();
      if (role === "reviewer") await sound(loopback, "a key without an application");
    });
  });
}

test("facet console shows an administrator all but the cluster", async () => {
  const keys = { accessKey: cluster.info.access_key, secretKey: cluster.info.secret_key };
  await onLoopback(["--profile", saveProfile(cluster, keys)], async (loopback) => {
    assert.deepEqual(await shown(loopback.page), pages.filter(([path]) => path !== "cluster").map(([path]) => texts.frame[path]));
  });
});
