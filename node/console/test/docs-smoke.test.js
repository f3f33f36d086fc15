// The pages of the interface: all operations are listed, and one is tried. The collection for Bruno is up to date.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { files, folder } from "../../../scripts/clients/bruno.mjs";
import { texts as t } from "../docs/texts.js";
import { texts } from "../web/texts.js";
import { launch, visit } from "./browser.js";
import { startCluster } from "./cluster.js";
import { description } from "./interface.js";

test("an operation is tried", async () => {
  const browser = await launch();
  let cluster;
  try {
    cluster = await startCluster();
    const v = await visit(browser, cluster.address);
    await v.page.getByText(texts.try.choose).first().waitFor(); // signed in, by an address that works once
    await v.page.goto(`${new URL(cluster.address).origin}/docs/#/listGalleries`);
    await v.page.getByRole("button", { name: t.send("GET") }).click();
    await v.page.locator("[aria-live] pre").waitFor();
    assert.deepEqual(JSON.parse((await v.page.locator("[aria-live] pre").textContent()) ?? ""), { galleries: [] });
    const operations = Object.values(description().paths).flatMap((item) => Object.values(/** @type {object} */ (item)));
    assert.equal(await v.page.locator(".list li").count(), operations.length);
    assert.deepEqual(v.faults, []);
  } finally {
    await browser.close();
    await cluster?.stop();
  }
});

test("the collection has each operation as it is described", () => {
  const made = files();
  for (const [name, text] of Object.entries(made)) {
    const file = join(folder, name);
    assert.equal(existsSync(file) ? readFileSync(file, "utf8") : "", text, `${name}: run "node scripts/clients/bruno.mjs"`);
  }
  const there = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((f) => f.isFile() && f.name !== "README.md");
  assert.equal(there.length, Object.keys(made).length, 'other files: run "node scripts/clients/bruno.mjs"');
});
