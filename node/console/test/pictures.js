// Draws the pictures of docs/console.md from a cluster with the sample photos.
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { texts } from "../web/texts.js";
import { choosePhoto, launch, photo, visit } from "./browser.js";
import { setTenant, startCluster } from "./cluster.js";
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
  await drawDuplicates(page);
  await shot("duplicates");
  await drawReview(page);
  await shot("review");
  await drawAudit(page);
  await shot("audit");
}

/**
 * drawDuplicates shows pairs of a gallery, and the photos of one of them opened.
 * @param {import("playwright-core").Page} page
 */
async function drawDuplicates(page) {
  await makeGallery(page, "members");
  const members = folderOf({
    "M-1041/1.jpg": "face_recognition/obama.jpg", "M-2230/1.jpg": "face_recognition/obama3.jpg", "M-2231/1.jpg": "face_recognition/obama2.jpg",
    "M-3307/1.jpg": "face_recognition/biden.jpg", "M-4410/1.jpg": "face_recognition/biden.jpg", "M-5002/1.png": "scikit-image/astronaut.png",
  });
  await page.evaluate(async () => {
    const from = "/console/state.js"; // not known to the types
    const { client, chosen, applications } = await import(from);
    const { id } = (await client.value.galleries()).find((/** @type {{name: string}} */ g) => g.name === "members");
    await client.value.updateGallery(id, { photoLink: "https://hr.example/photos/{externalId}.jpg" });
    chosen.value = applications.value.find((/** @type {{name: string}} */ a) => a.name === "members").id;
  });
  await importFolder(page, members);
  rmSync(members, { recursive: true });
  await page.context().route("https://hr.example/**", (route) => route.fulfill({ path: photo("face_recognition/obama.jpg") }));
  await go(page, "duplicates", texts.duplicates.title);
  await page.getByLabel(texts.duplicates.gallery).selectOption("members");
  await page.getByRole("slider").fill("8000");
  await page.getByRole("button", { name: texts.duplicates.begin }).click();
  await page.getByRole("heading", { name: /pairs? in/ }).waitFor();
  for (const link of await page.locator("tbody tr").first().getByRole("link").all()) {
    const [tab] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
    await tab.close();
  }
}

/**
 * drawReview shows cases of the gallery of drawDuplicates, and the photos of the first one opened.
 * @param {import("playwright-core").Page} page
 */
async function drawReview(page) {
  await page.evaluate(
    async (faces) => {
      const from = "/console/state.js"; // not known to the types
      const { client, application, inGallery } = await import(from);
      await client.value.updateApplication(application.value.id, { verifyThreshold: 9990, reviewThreshold: 5000, reviewVerdicts: 2 });
      for (const [i, reference] of ["V-2026-0117", "V-2026-0121"].entries()) {
        const probe = new Blob([Uint8Array.from(atob(faces[i] ?? ""), (x) => x.charCodeAt(0))]);
        const verified = () => inGallery.value.verify("externalId:M-1041", probe, { reference }).then(() => true, () => false);
        while (await verified()); // until the node knows the band, the verification is doubtful then
      }
    },
    ["obama2", "obama3"].map((name) => readFileSync(photo(`face_recognition/${name}.jpg`)).toString("base64")),
  );
  await go(page, "review", texts.review.title);
  for (const link of await page.locator("tbody tr").first().getByRole("link").all()) {
    const [tab] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
    await tab.close();
  }
  await page.getByRole("button", { name: texts.review.same }).waitFor();
}

/**
 * drawAudit shows records of a few requests.
 * @param {import("playwright-core").Page} page
 */
async function drawAudit(page) {
  setTenant(cluster.dir, "--audit", "strict");
  await go(page, "try", texts.try.title);
  await choosePhoto(page, texts.try.choose, photo("face_recognition/obama2.jpg"));
  await page.getByRole("button", { name: texts.try.search, exact: true }).click();
  await page.getByRole("cell", { name: /./ }).first().waitFor();
  for (const path of /** @type {const} */ (["galleries", "duplicates"])) await go(page, path, texts[path].title);
  await page.waitForLoadState("networkidle");
  await go(page, "audit", texts.audit.title);
  await page.getByText(/in the log that the key has signed/).waitFor();
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
