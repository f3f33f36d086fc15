// Hostile photos, names and ids; the camera; and the keyboard alone.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { crc32, deflateSync } from "node:zlib";
import { readFileSync } from "node:fs";
import { texts } from "../web/texts.js";
import { choosePhoto, launch, photo, visit } from "./browser.js";
import { startCluster } from "./cluster.js";
import { folderOf, go, importFolder, saved, sound } from "./steps.js";

/** @type {Awaited<ReturnType<typeof startCluster>>} */
let cluster;
/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("./browser.js").Visit} */
let v;
/** @type {string[]} */
const folders = [];
const markup = '<img src=x onerror="window.facetFault(1)">';

before(async () => {
  browser = await launch(["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]);
  cluster = await startCluster();
  v = await visit(browser, cluster.address, { viewport: { width: 1200, height: 800 }, permissions: ["camera"] });
  v.page.setDefaultTimeout(15_000);
});
after(async () => {
  await browser?.close();
  await cluster?.stop();
  folders.forEach((dir) => rmSync(dir, { recursive: true }));
});

/** @param {Parameters<typeof folderOf>[0]} files */
function folder(files) {
  const made = folderOf(files);
  folders.push(made);
  return made;
}

/** Fails if the page made an element of the markup. */
async function noMarkup() {
  assert.equal(await v.page.locator("img[src=x]").count(), 0, "the page made markup of a name");
  assert.deepEqual(v.faults, []);
}

test("the keyboard alone makes a gallery", async () => {
  await go(v.page, "galleries", texts.galleries.title);
  await tabTo(texts.galleries.make);
  await v.page.keyboard.press("Enter");
  await v.page.locator("dialog").waitFor();
  await v.page.keyboard.press("Escape");
  await v.page.locator("dialog").waitFor({ state: "detached" });
  assert.equal(await focused(), texts.galleries.make, "the focus is lost after Escape");
  await v.page.keyboard.press("Enter");
  await v.page.locator("dialog").waitFor();
  await v.page.keyboard.type(markup);
  await tabTo(texts.galleries.make);
  await v.page.keyboard.press("Enter");
  await v.page.getByRole("heading", { name: markup }).waitFor();
  assert.equal(await focused(), texts.galleries.make, "the focus is lost after the dialog");
  await noMarkup();
});

test("the keyboard alone tries a photo", async () => {
  await go(v.page, "try", texts.try.title);
  await chooseByKeys(texts.try.choose, "face_recognition/obama.jpg");
  await v.page.getByText(texts.try.usable).waitFor();
  await chooseByKeys(texts.try.chooseSecond, "face_recognition/obama2.jpg");
  await v.page.getByText(texts.try.same, { exact: true }).waitFor();
  await tabTo(texts.try.search);
  await v.page.keyboard.press("Enter");
  await v.page.getByText(texts.try.nobody(7000)).waitFor();
});

/** The name of the element that has the focus. */
const focused = () => v.page.evaluate(() => {
  const at = document.activeElement;
  return (at instanceof HTMLInputElement ? at.labels?.[0]?.textContent : at?.textContent)?.trim() ?? "";
});

/**
 * tabTo presses Tab until an element of this name has the focus.
 * @param {string} name
 */
async function tabTo(name) {
  for (let i = 0; i < 60; i++) {
    await v.page.keyboard.press("Tab");
    if ((await focused()) === name) return;
  }
  assert.fail(`no Tab leads to ${name}`);
}

/**
 * @param {string} label
 * @param {string} name of a sample photo
 */
async function chooseByKeys(label, name) {
  for (let tries = 1; ; tries++) { // a page that is drawn meanwhile may lose a key
    await tabTo(label);
    const opened = v.page.waitForEvent("filechooser", { timeout: 3000 }).catch(() => undefined);
    await v.page.keyboard.press("Space");
    const chooser = await opened;
    if (chooser) return chooser.setFiles(photo(name));
    if (tries === 5) throw new Error(`Space opens no dialog for "${label}"`);
  }
}

test("hostile ids stay text, in pages and in saved lists", async () => {
  const dir = folder({ "1.jpg": "face_recognition/obama.jpg", "2.jpg": "face_recognition/biden.jpg", "3.png": "scikit-image/astronaut.png", "4.jpg": "face-api/sample1.jpg", "5.jpg": Buffer.from("none") });
  const ids = [markup, "=cmd|' /C calc'!A0", "@SUM(A1)", "+1+1", "-1+1"];
  const quoted = (/** @type {string} */ id) => `"${id.replaceAll('"', '""')}"`;
  const names = ["1.jpg", "2.jpg", "3.png", "4.jpg", "5.jpg"];
  const list = join(folder({ "list.csv": Buffer.from(`file,external_id\n${ids.map((id, i) => `${names[i]},${quoted(id)}\n`).join("")}`) }), "list.csv");
  await importFolder(v.page, dir, list);
  const report = await saved(v.page, () => v.page.getByRole("button", { name: texts.import.report }).click());
  for (const id of ids) assert.ok(report.includes(id === markup ? quoted(id) : `,'${id},`), `${id} in\n${report}`);
  assert.doesNotMatch(report, /(^|,)"?[=+@-]/m, report);
  await go(v.page, "galleries", texts.galleries.title);
  await v.page.getByRole("link", { name: texts.galleries.showSubjects }).click();
  await v.page.getByText(markup, { exact: true }).first().waitFor();
  await noMarkup();
  await go(v.page, "try", texts.try.title);
  await choosePhoto(v.page, texts.try.choose, photo("face_recognition/obama2.jpg"));
  await v.page.getByRole("button", { name: texts.try.search, exact: true }).click();
  await v.page.getByText(markup, { exact: true }).waitFor();
  await noMarkup();
  await go(v.page, "erase", texts.erase.title);
  await v.page.getByLabel(texts.erase.externalId).fill(markup);
  await v.page.getByRole("button", { name: texts.erase.find }).click();
  await v.page.getByLabel(texts.erase.tickOne(markup)).waitFor();
  await noMarkup();
  await sound(v, "hostile ids");
});

/**
 * png returns an image that claims a size, and has no more than a few bytes.
 * @param {number} width
 * @param {number} height
 */
function png(width, height) {
  const chunk = (/** @type {string} */ kind, /** @type {Buffer} */ data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(Buffer.alloc(1000))), chunk("IEND", Buffer.alloc(0))]);
}

const script = "<script>window.facetFault('ran')</script>";
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100" onload="window.facetFault('ran')">${script}<image href="https://example.com/x"/></svg>`;
const hostile = {
  "huge.png": png(60_000, 60_000),
  "svg.jpg": Buffer.from(svg),
  "page.gif": Buffer.from(`GIF89a/*${script}*/=1`),
  "empty.jpg": Buffer.alloc(0),
};

for (const [name, buffer] of Object.entries(hostile)) {
  test(`a hostile file is refused in words: ${name}`, async () => {
    await go(v.page, "galleries", texts.galleries.title);
    await go(v.page, "try", texts.try.title);
    await choosePhoto(v.page, texts.try.choose, { name, mimeType: "image/jpeg", buffer });
    const alert = v.page.getByRole("alert");
    await alert.waitFor();
    assert.match((await alert.textContent()) ?? "", /\w{3,}.*Request [0-9a-f]{32}/s);
    await sound(v, name);
  });
}

test("a photo that is a page, too, is a photo", async () => {
  await go(v.page, "galleries", texts.galleries.title);
  await go(v.page, "try", texts.try.title);
  const buffer = Buffer.concat([readFileSync(photo("face_recognition/obama.jpg")), Buffer.from(`<html>${script}`)]);
  await choosePhoto(v.page, texts.try.choose, { name: "x.jpg", mimeType: "image/jpeg", buffer });
  await v.page.getByText(texts.try.usable).waitFor();
  await noMarkup();
});

test("a file of 30 MB is not sent", async () => {
  await go(v.page, "galleries", texts.galleries.title);
  await go(v.page, "try", texts.try.title);
  /** @type {string[]} */
  const sent = [];
  v.page.on("request", (r) => void (r.method() === "POST" && sent.push(r.url())));
  await choosePhoto(v.page, texts.try.choose, { name: "big.jpg", mimeType: "image/jpeg", buffer: Buffer.alloc(30 << 20) });
  await v.page.getByRole("alert").getByText(/scale it down/).waitFor();
  assert.deepEqual(sent, []);
});

test("an address that can't be read leads to a page", async () => {
  const page = await v.page.context().newPage();
  await page.goto(`${v.page.url().replace(/#.*/, "")}#/galleries/%E0`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.close();
});

test("the camera is off until asked for, and after the photo", async () => {
  const page = await v.page.context().newPage();
  await page.addInitScript(() => {
    const { mediaDevices } = navigator;
    const asked = mediaDevices.getUserMedia.bind(mediaDevices);
    /** @type {MediaStream[]} */
    const streams = [];
    Object.assign(window, { streams });
    mediaDevices.getUserMedia = async (what) => {
      const stream = await asked(what);
      streams.push(stream);
      return stream;
    };
  });
  const states = () => page.evaluate(() => /** @type {any} */ (window).streams.flatMap((/** @type {MediaStream} */ s) => s.getTracks().map((t) => t.readyState)));
  /** Waits until so many streams have been asked for, and all have ended. @param {number} n */
  const ended = (n) =>
    page.waitForFunction((n) => {
      const tracks = /** @type {any} */ (window).streams.flatMap((/** @type {MediaStream} */ s) => s.getTracks());
      return tracks.length === n && tracks.every((/** @type {MediaStreamTrack} */ t) => t.readyState === "ended");
    }, n);
  await page.goto(v.page.url().replace(/#.*/, ""));
  await page.getByRole("button", { name: texts.parts.camera }).waitFor();
  await page.waitForTimeout(500);
  assert.deepEqual(await states(), [], "the camera was asked for");
  await page.getByRole("button", { name: texts.parts.camera }).click();
  await page.getByRole("button", { name: texts.parts.takePhoto }).click();
  await page.getByRole("heading", { name: texts.try.seen }).waitFor();
  await ended(1);
  await page.getByRole("button", { name: texts.try.other }).click();
  await page.getByRole("button", { name: texts.parts.camera }).click();
  await page.getByRole("button", { name: texts.parts.takePhoto, disabled: false }).waitFor();
  await page.getByRole("button", { name: texts.parts.cancel }).click();
  await page.getByRole("button", { name: texts.parts.camera }).waitFor();
  await ended(2);
  await page.close();
});
