// Draws the pictures of docs/console.md from a cluster with the sample photos.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { texts } from "../web/texts.js";
import { choosePhoto, launch, photo, visit } from "./browser.js";
import { startCluster } from "./cluster.js";
import { folderOf, go, importFolder, makeGallery } from "./steps.js";

const out = join(import.meta.dirname, "../../../docs/pictures");

/** @param {import("playwright-core").Page} page */
async function draw(page) {
  const shot = (/** @type {string} */ name) => page.screenshot({ path: join(out, `console-${name}.jpg`), type: "jpeg", quality: 70, fullPage: true });
  await makeGallery(page, "staff");
  const people = folderOf({
    "obama/1.jpg": "face_recognition/obama.jpg", "obama/2.jpg": "face_recognition/obama3.jpg", "biden/1.jpg": "face_recognition/biden.jpg",
    "astronaut/1.png": "scikit-image/astronaut.png", "rocket/1.jpg": "scikit-image/rocket.jpg",
  });
  await importFolder(page, people);
  await shot("import");
  await go(page, "try", texts.try.title);
  await choosePhoto(page, texts.try.choose, photo("face_recognition/obama2.jpg"));
  await page.getByText(texts.try.usable).waitFor();
  await choosePhoto(page, texts.try.chooseSecond, photo("face_recognition/obama.jpg"));
  await page.getByText(texts.try.same, { exact: true }).waitFor();
  await page.getByRole("button", { name: texts.try.search, exact: true }).click();
  await page.getByRole("cell", { name: /^obama/ }).waitFor();
  await shot("try");
  await go(page, "lab", texts.lab.title);
  await page.locator("input[webkitdirectory]").setInputFiles(people);
  await page.getByRole("button", { name: texts.lab.compare }).click();
  await page.getByRole("heading", { name: texts.lab.report }).waitFor();
  await shot("lab");
  await go(page, "cluster", texts.cluster.title);
  await page.getByText(texts.cluster.healthy).waitFor();
  await shot("cluster");
  rmSync(people, { recursive: true });
}

const browser = await launch();
const cluster = await startCluster();
try {
  const { page } = await visit(browser, cluster.address, { viewport: { width: 1000, height: 600 }, colorScheme: "light" });
  await draw(page);
} finally {
  await browser.close();
  await cluster.stop();
}
