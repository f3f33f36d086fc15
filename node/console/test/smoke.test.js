// A real Chromium opens the console of a real cluster, from a node and from loopback: within a minute.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { texts } from "../web/texts.js";
import { accessibility, choosePhoto, launch, overflow, photo, visit } from "./browser.js";
import { startCluster, startConsole } from "./cluster.js";

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

/**
 * check looks at a page, narrow and light, then wide and dark.
 * @param {import("./browser.js").Visit} v
 */
async function check(v) {
  for (const [colorScheme, width] of /** @type {const} */ ([["light", 320], ["dark", 1280]])) {
    await v.page.emulateMedia({ colorScheme });
    await v.page.setViewportSize({ width, height: 700 });
    assert.ok((await overflow(v.page)) <= 0, `scrolls sideways at ${width} pixels`);
    assert.deepEqual(await accessibility(v.page), [], `${colorScheme}, ${width} pixels`);
  }
  assert.deepEqual(v.faults, []);
}

test("a node's page asks for a key", async () => {
  const v = await visit(browser, `${cluster.info.base_urls[0]}/console`);
  await v.page.getByLabel(texts.signIn.secretKey).waitFor();
  await check(v);
  await v.close();
});

test("loopback's page compares two photos, and holds no secret", async () => {
  const { address, stop } = await startConsole("--dir", cluster.dir);
  const v = await visit(browser, address);
  await choosePhoto(v.page, texts.try.choose, photo("face_recognition/obama.jpg"));
  await v.page.getByText(texts.try.usable).waitFor();
  assert.equal(await v.page.locator(".photo svg rect.chosen").count(), 1, "boxes of one face");
  await choosePhoto(v.page, texts.try.chooseSecond, photo("face_recognition/obama2.jpg"));
  await v.page.getByText(texts.try.same, { exact: true }).waitFor();
  await check(v);
  assert.equal(new URL(v.page.url()).search, "", "the token stays in the address");
  const held = await v.page.evaluate(() => document.documentElement.outerHTML + document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage));
  assert.ok(!held.includes(cluster.info.secret_key), "the page holds the secret key");
  const second = await visit(browser, address);
  assert.match((await second.page.textContent("body")) ?? "", /works once/);
  await second.close();
  await v.close();
  await stop();
});

test("the libraries work under the policy", async () => {
  const v = await visit(browser, `${cluster.info.base_urls[0]}/console/`);
  const drawn = await v.page.evaluate(async () => {
    const from = "/console/vendor/"; // not known to the types
    const { default: Plot } = await import(`${from}uplot.js`);
    const { h, render } = await import(`${from}preact.js`);
    const { useState } = await import(`${from}hooks.js`);
    const { signal } = await import(`${from}signals.js`);
    const { default: htm } = await import(`${from}htm.js`);
    const link = document.createElement("link");
    Object.assign(link, { rel: "stylesheet", href: `${from}uplot.css` });
    document.head.append(link);
    const place = document.createElement("div");
    document.body.append(place);
    const count = signal(1);
    const html = htm.bind(h);
    render(h(() => html`<p style=${{ color: "red" }} class="count">${count} ${useState(5)[0]}</p>`), place);
    count.value = 2;
    await new Promise((r) => setTimeout(r, 100));
    new Plot({ width: 200, height: 100, title: "t", series: [{}, { label: "a", stroke: "red" }] }, [[1, 2, 3], [3, 1, 2]], document.body);
    await new Promise((r) => setTimeout(r, 100));
    return [place.textContent, document.querySelectorAll(".uplot canvas").length];
  });
  assert.deepEqual(drawn, ["2 5", 1]);
  assert.deepEqual(v.faults, []);
  await v.close();
});

// The last one: it takes a node away.
test("facet dev's page goes on when a node dies", async () => {
  const v = await visit(browser, cluster.address);
  await v.page.getByRole("heading", { name: texts.try.title }).waitFor();
  process.kill(cluster.info.nodes[1].pid, "SIGKILL");
  const answers = await v.page.evaluate(async () => {
    const seen = [];
    for (let i = 0; i < 6; i++) seen.push((await fetch("/v1.1/health")).status, (await fetch("/api/galleries")).status);
    return seen;
  });
  assert.deepEqual(answers, Array(12).fill(200));
  const status = await v.page.evaluate(async () => (await fetch("/admin/status")).json());
  assert.equal(status.nodes.length, 3);
  assert.deepEqual(v.faults, []);
  await v.close();
});
