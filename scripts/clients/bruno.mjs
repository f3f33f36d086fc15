// Writes a collection for the program Bruno from the interface's description: a request for each
// operation, signed by Bruno's AWS Signature Version 4.
//
// usage: node scripts/clients/bruno.mjs
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(import.meta.dirname, "../..");
export const folder = join(root, "clients/bruno");
const METHODS = ["get", "post", "put", "patch", "delete"];
const IMAGE = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDA"; // how the photos of examples begin

/** @typedef {Record<string, any>} Json */

/**
 * section returns a section of a request, nothing without lines.
 * @param {string} name
 * @param {string[]} lines
 */
function section(name, lines) {
  return lines.length > 0 ? `${name} {\n${lines.map((line) => `  ${line}\n`).join("")}}\n` : "";
}

/** files returns the collection: texts by their paths. */
export function files() {
  const description = JSON.parse(readFileSync(join(root, "node/httpapi/openapi/openapi.json"), "utf8"));
  /** follow returns what a reference names. @param {Json | undefined} value */
  const follow = (value) => (value?.$ref ? value.$ref.slice(2).split("/").reduce((/** @type {any} */ at, /** @type {string} */ part) => at[part], description) : value);
  /** @type {Record<string, string>} */
  const made = {
    "bruno.json": JSON.stringify({ version: "1", name: "facet", type: "collection", ignore: [] }, null, 2) + "\n",
    "collection.bru": section("auth", ["mode: awsv4"]) + "\n" + section("auth:awsv4", [
      "accessKeyId: {{accessKey}}", "secretAccessKey: {{secretKey}}", "sessionToken: ", "service: execute-api", "region: {{region}}", "profileName: ",
    ]),
    "environments/cluster.bru": section("vars", ["baseUrl: https://localhost:7420", "region: ap-southeast-2", "apiKey: ", "photo: "]) +
      "vars:secret [\n  accessKey,\n  secretKey\n]\n",
  };
  let seq = 0;
  for (const [path, item] of Object.entries(/** @type {Record<string, Json>} */ (description.paths))) {
    for (const method of METHODS.filter((m) => item[m])) {
      made[`${item[method].tags[0]}/${item[method].operationId}.bru`] = request({ method, path, seq: ++seq, follow, ...item[method] });
    }
  }
  return made;
}

/**
 * request returns the text of an operation.
 * @param {Json} operation
 */
function request({ method, path, seq, follow, operationId, summary, description, security, parameters = [], requestBody }) {
  /** @type {Json[]} */
  const known = parameters.map(follow);
  const content = follow(requestBody)?.content["application/json"];
  const example = content?.example ?? follow(Object.values(content?.examples ?? {})[0])?.value;
  const of = (/** @type {string} */ place) => known.filter((p) => p.in === place);
  // A value that need not be there is switched off.
  const value = (/** @type {Json} */ p) => `${p.required ? "" : "~"}${p.name}: ${p.example ?? follow(p.schema)?.default ?? ""}`;
  const headers = [...(security.some((/** @type {Json} */ s) => "apiKey" in s) ? ["x-api-key: {{apiKey}}"] : []), ...of("header").map(value)];
  const query = of("query").map(value);
  const at = path.replace(/\{(\w+)\}/g, ":$1");
  const body = JSON.stringify(example, (_, v) => (typeof v === "string" && v.startsWith(IMAGE) ? "{{photo}}" : v), 2);
  return [
    section("meta", [`name: ${operationId}`, "type: http", `seq: ${seq}`]),
    section(method, [`url: {{baseUrl}}${at}`, `body: ${body ? "json" : "none"}`, "auth: inherit"]),
    section("params:query", query),
    section("params:path", of("path").map(value)),
    section("headers", headers),
    body ? section("body:json", body.split("\n")) : "",
    section("docs", [summary, ...(description ? ["", ...description.split("\n")] : [])].map((line) => line.trimEnd())).replace(/ +$/gm, ""),
  ].filter(Boolean).join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const name of readdirSync(folder)) if (name !== "README.md") rmSync(join(folder, name), { recursive: true });
  for (const [name, text] of Object.entries(files())) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}
