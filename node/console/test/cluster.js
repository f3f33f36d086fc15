import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");
const facet = join(root, "bin/facet");
const startTimeout = 90_000;

/**
 * DevInfo is the part of dev.json that the tests use.
 * @typedef {{ base_urls: string[], ca_file: string, access_key: string, secret_key: string, nodes: { name: string, pid: number, url: string }[] }} DevInfo
 */

/**
 * Started is a program that runs until stop.
 * @typedef {{ output: () => string, stop: () => Promise<void> }} Started
 */

/**
 * start runs facet until its output has what is wanted.
 * @param {string[]} args
 * @param {RegExp} wanted
 * @returns {Promise<Started>}
 */
function start(args, wanted) {
  if (!existsSync(facet)) throw new Error(`there is no ${facet}: run "make setup build" first`);
  const child = spawn(facet, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGINT");
    await ended;
  };
  return new Promise((resolve, reject) => {
    let why = "ended";
    const late = setTimeout(() => {
      why = `did not start in ${startTimeout / 1000} seconds`;
      child.kill("SIGINT");
    }, startTimeout);
    const take = (/** @type {Buffer} */ piece) => {
      output += piece;
      if (!wanted.test(output)) return;
      clearTimeout(late);
      resolve({ output: () => output, stop });
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.once("exit", () => {
      clearTimeout(late);
      reject(new Error(`facet ${args.join(" ")} ${why}:\n${output}`));
    });
  });
}

/**
 * addressIn returns the console's address in a program's output.
 * @param {Started} program
 */
function addressIn(program) {
  const found = program.output().match(/http:\/\/127\.0\.0\.1:\d+\/\?token=\w+/);
  if (!found) throw new Error(`no address of a console in:\n${program.output()}`);
  return found[0];
}

/**
 * startCluster runs a cluster of facet dev in a folder of its own.
 * @returns {Promise<{ dir: string, info: DevInfo, address: string, stop: () => Promise<void> }>}
 */
export async function startCluster() {
  const dir = mkdtempSync(join(tmpdir(), "facet-console-"));
  const remove = () => rmSync(dir, { recursive: true });
  try {
    const { stop, ...cluster } = await startDev(join(dir, "dev"));
    return { ...cluster, stop: () => stop().finally(remove) };
  } catch (e) {
    const logs = ["n1", "n2", "n3"].map((name) => join(dir, "dev", `${name}.log`)).filter((log) => existsSync(log));
    const ends = logs.map((log) => `end of ${log}:\n${readFileSync(log, "utf8").slice(-4000)}`);
    remove();
    throw new Error(ends.join("\n"), { cause: e });
  }
}

/**
 * startDev runs a cluster of facet dev, a new one or that of the folder.
 * @param {string} dir
 */
export async function startDev(dir) {
  const dev = await start(["dev", "--dir", dir, "--nodes", "3", "--shards", "2"], /token=\w+[^]*\n/);
  const info = /** @type {DevInfo} */ (JSON.parse(readFileSync(join(dir, "dev.json"), "utf8")));
  return { dir, info, address: addressIn(dev), stop: dev.stop };
}

/**
 * fill puts templates into a gallery with one subject. The cluster of facet dev in dir must have stopped.
 * @param {{ dir: string, info: DevInfo, gallery: string, subject: string, event: string, events: number }} wanted
 */
export function fill({ dir, info, gallery, subject, event, events }) {
  const note = join(dir, "filled.json");
  writeFileSync(note, JSON.stringify(info));
  const about = ["-info", note, "-key", join(dir, "certificates/cluster.key"), "-gallery", gallery, "-subject", subject, "-event", event, "-events", String(events)];
  execFileSync("go", ["run", "-tags", "hashicorpmetrics", "./console/fill", ...about], { cwd: join(root, "scripts"), stdio: ["ignore", "ignore", "inherit"] });
}

/**
 * startConsole runs facet console with arguments that name the profile.
 * @param {string[]} args
 */
export async function startConsole(...args) {
  const program = await start(["console", ...args], /token=\w+[^]*\n/);
  return { address: addressIn(program), stop: program.stop };
}

/**
 * Keys are what signs a person in. An administrator needs no application key.
 * @typedef {{ accessKey: string, secretKey: string }} Keys
 */

/** @typedef {"admin" | "biometric" | "read-only" | "enrol-only" | "search-only" | "reviewer" | "auditor"} Role */

/**
 * createKey makes an access key of the cluster's tenant.
 * @param {string} dir
 * @param {Role} role
 * @param {string} [holder]
 * @returns {Keys}
 */
export function createKey(dir, role, holder) {
  const [{ name }] = JSON.parse(run("tenant", "list", "--dir", dir, "--json"));
  const pair = JSON.parse(run("key", "create", "--dir", dir, "--tenant", name, "--role", role, ...(holder ? ["--holder", holder] : []), "--json"));
  return { accessKey: pair.access_key, secretKey: pair.secret_key };
}

/**
 * saveProfile writes keys into a new profile beside the folder of facet dev, and returns its name. In that folder
 * it would be an operator's, too.
 * @param {{ dir: string, info: DevInfo }} cluster
 * @param {Keys} keys
 */
export function saveProfile({ dir, info }, keys) {
  const file = join(dir, `../${keys.accessKey}.json`);
  const profile = { base_urls: info.base_urls, ca_file: info.ca_file, access_key: keys.accessKey, secret_key: keys.secretKey };
  writeFileSync(file, JSON.stringify(profile), { mode: 0o600 });
  return file;
}

/**
 * createGallery makes a gallery, and returns the API key of its application.
 * @param {string} dir
 * @param {string} name
 * @returns {string}
 */
export const createGallery = (dir, name) => JSON.parse(run("gallery", "create", name, "--dir", dir, "--json")).apiKey;

/**
 * setTenant changes settings of the cluster's tenant, as facet tenant set does.
 * @param {string} dir
 * @param {string[]} settings
 */
export function setTenant(dir, ...settings) {
  const [{ name }] = JSON.parse(run("tenant", "list", "--dir", dir, "--json"));
  run("tenant", "set", name, ...settings, "--dir", dir);
}

/** @param {string[]} args */
const run = (...args) => execFileSync(facet, args, { encoding: "utf8" });
