// Compares node/console/web/vendor with the npm packages that node/console/vendor.json names:
// fetches them with npm, checks npm's own hash of each package, makes the changes that vendor.json
// describes, and compares each file. With -write it writes the files and their hashes instead.
//
// usage: node scripts/console/vendor.mjs [-write]
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const args = process.argv.slice(2);
const write = args[0] === "-write";
if (args.length > (write ? 1 : 0)) {
  console.error("usage: node scripts/console/vendor.mjs [-write]");
  process.exit(2);
}
const root = join(import.meta.dirname, "../..");
const lockFile = join(root, "node/console/vendor.json");
const folder = join(root, "node/console/web/vendor");
const lock = JSON.parse(readFileSync(lockFile, "utf8"));
const temporary = mkdtempSync(join(tmpdir(), "facet-vendor-"));
let wrong = 0;

/** @param {string} what */
function differs(what) {
  console.error(`console-vendor: ${what}`);
  wrong++;
}

/** fetchPackage unpacks a package and returns its folder. npm refuses a package with another hash than the registry's list. */
function fetchPackage(p) {
  const [info] = JSON.parse(execFileSync("npm", ["pack", "--json", `${p.name}@${p.version}`], { cwd: temporary, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }));
  if (write) p.integrity = info.integrity;
  if (info.integrity !== p.integrity) differs(`${p.name} ${p.version} has the hash ${info.integrity}, not ${p.integrity}`);
  const to = join(temporary, info.filename + ".d");
  mkdirSync(to);
  execFileSync("tar", ["-xzf", info.filename, "-C", to, "--strip-components=1"], { cwd: temporary });
  return to;
}

/** changed returns the text of a file as the console has it. */
function changed(text, f) {
  if (!f.to.endsWith(".js")) return text;
  text = text.replace(/\b(from|import)\s*"([^"]+)"/g, (whole, word, name) => {
    if (name.startsWith("./")) return whole;
    if (!lock.imports[name]) throw new Error(`${f.from} imports ${name}, for which vendor.json has no file`);
    return `${word}"${lock.imports[name]}"`;
  });
  return text.replace(/^\/\/# sourceMappingURL=.*\n?/m, "") + (f.append ?? "");
}

try {
  const expected = new Set();
  for (const p of lock.packages) {
    const from = fetchPackage(p);
    for (const f of p.files) {
      const text = changed(readFileSync(join(from, f.from), "utf8"), f);
      const to = join(folder, f.to);
      expected.add(f.to);
      if (write) {
        f.sha256 = createHash("sha256").update(text).digest("hex");
        mkdirSync(dirname(to), { recursive: true });
        writeFileSync(to, text);
      } else if (readFileSync(to, "utf8") !== text) {
        differs(`${f.to} is not ${f.from} of ${p.name} ${p.version}`);
      }
    }
  }
  for (const name of readdirSync(folder, { recursive: true })) {
    if (/\.(js|css|txt)$/.test(name) && !expected.has(name)) differs(`${name} is in no package of vendor.json`);
  }
  if (write) writeFileSync(lockFile, JSON.stringify(lock, null, 2) + "\n");
} finally {
  rmSync(temporary, { recursive: true });
}
if (wrong) process.exit(1);
console.log(`console-vendor: ${lock.packages.length} packages, every file is theirs`);
