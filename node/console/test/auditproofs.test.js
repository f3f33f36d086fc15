// The proofs of an audit log, against vectors that the server's code makes (TestVectorsAreCurrent).
import assert from "node:assert/strict";
import { createHash, createPrivateKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { AuditLog } from "../web/auditlog.js";
import { readRecord } from "../web/auditrecord.js";
import { base64, bytesOf, consistent, Fault, included, leafHash, openCheckpoint, proofText, Tiles, tileIn } from "../web/merkle.js";
import { texts } from "../web/texts.js";

/** @typedef {{ at: number, hashes: string[] }} Proof */
/** @typedef {{ key: string, other: string, changed: string, swapped: string, foreign: string, logs: { size: number, checkpoint: string, inclusion: Proof[], older: Proof[] }[], records: { content: string, shown: any }[] }} Vectors */
/** @typedef {{ size: number, files: Map<string, Uint8Array>, entries: string[] }} Log */

const t = texts.audit;
const v = /** @type {Vectors} */ (JSON.parse(readFileSync(join(import.meta.dirname, "testdata/audit.json"), "utf8")));
const utf8 = new TextEncoder();

/** @param {string} text */
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));

/** @param {number[]} prefix @param {Uint8Array[]} parts */
const hash = (prefix, ...parts) => new Uint8Array(parts.reduce((h, p) => h.update(p), createHash("sha256").update(new Uint8Array(prefix))).digest());

/** rootOf is the root of RFC 6962, 2.1, written as there. @param {Uint8Array[]} leaves @returns {Uint8Array} */
function rootOf(leaves) {
  if (leaves.length === 1) return /** @type {Uint8Array} */ (leaves[0]);
  let k = 1;
  while (2 * k < leaves.length) k *= 2;
  return hash([1], rootOf(leaves.slice(0, k)), rootOf(leaves.slice(k)));
}

/**
 * logOf makes the files of a log. Tiles are named for their size by tlog-tiles.
 * @param {number} size
 * @param {string} checkpoint
 * @param {Record<number, string>} [others] entries with another text
 * @returns {Log}
 */
function logOf(size, checkpoint, others = {}) {
  const entries = Array.from({ length: size }, (_, i) => others[i] ?? `entry ${i}`);
  const files = new Map([["checkpoint", bytes(checkpoint)], ["key", utf8.encode(`${v.key}\n`)]]);
  /** @type {Uint8Array[]} */
  let hashes = entries.map((e) => hash([0], utf8.encode(e)));
  for (let level = 0; hashes.length > 0; level++) {
    const above = [];
    for (let n = 0; n * 256 < hashes.length; n++) {
      const tile = hashes.slice(n * 256, n * 256 + 256);
      const path = `tile/${level}/${String(n).padStart(3, "0")}${tile.length < 256 ? `.p/${tile.length}` : ""}`;
      files.set(path, new Uint8Array(Buffer.concat(tile)));
      if (tile.length === 256) above.push(rootOf(tile));
    }
    hashes = above;
  }
  return { size, files, entries };
}

/** @param {Log} log */
const readerOf = (log) => async (/** @type {string} */ path) => {
  const file = log.files.get(path);
  if (!file) throw new Error(`there is no ${path}`);
  return file;
};

/** @param {number} size */
function vectorOf(size) {
  const found = v.logs.find((l) => l.size === size);
  if (!found) throw new Error(`no log of ${size} entries`);
  return found;
}

/** @type {Map<number, Log>} */
const made = new Map();

/** honest returns the log of so many entries. @param {number} size */
function honest(size) {
  const log = made.get(size) ?? logOf(size, vectorOf(size).checkpoint);
  made.set(size, log);
  return { ...log, files: new Map(log.files) };
}

/** @param {Uint8Array} b @param {number} at */
const flipped = (b, at) => b.map((byte, i) => (i === at ? byte ^ 1 : byte));

test("proofs are those of the server's code, and hold for their claims alone", async () => {
  for (const { size, checkpoint, inclusion, older } of v.logs) {
    const tiles = new Tiles(readerOf(honest(size)));
    const { root, signed } = await openCheckpoint(bytes(checkpoint), v.key);
    assert.ok(signed);
    for (const { at, hashes } of inclusion) {
      const proof = await tiles.inclusion(at, size);
      assert.deepEqual(proof.map(base64), hashes, `entry ${at} of ${size}`);
      const claim = { leaf: await leafHash(utf8.encode(`entry ${at}`)), index: at, size, root, proof };
      assert.ok(await included(claim), `entry ${at} of ${size}`);
      assert.ok(!(await included({ ...claim, leaf: flipped(claim.leaf, 31) })));
      assert.ok(!(await included({ ...claim, root: flipped(root, 0) })));
      assert.ok(!(await included({ ...claim, proof: [...proof, root] })));
      assert.ok(!(await included({ ...claim, index: size })));
      if (size > 1) assert.ok(!(await included({ ...claim, proof: proof.slice(1) })));
      if (size > 1) assert.ok(!(await included({ ...claim, index: at === 0 ? 1 : at - 1 })));
      for (let i = 0; i < proof.length; i++) {
        assert.ok(!(await included({ ...claim, proof: proof.map((p, k) => (k === i ? flipped(p, i) : p)) })));
      }
    }
    for (const { at, hashes } of older) {
      const proof = await tiles.consistency(at, size);
      assert.deepEqual(proof.map(base64), hashes, `${at} of ${size}`);
      const before = { size: at, root: await tiles.range(0, at, size) };
      const claim = { older: before, newer: { size, root }, proof };
      assert.ok(await consistent(claim), `${at} of ${size}`);
      assert.ok(!(await consistent({ ...claim, older: { ...before, root: flipped(before.root, 3) } })));
      assert.ok(!(await consistent({ ...claim, newer: { size, root: flipped(root, 3) } })));
      assert.ok(!(await consistent({ ...claim, proof: [...proof, root] })));
      for (let i = 0; i < proof.length; i++) {
        assert.ok(!(await consistent({ ...claim, proof: proof.map((p, k) => (k === i ? flipped(p, i) : p)) })));
      }
    }
  }
});

test("each changed byte of a checkpoint or a key is found", async () => {
  const { checkpoint } = vectorOf(257);
  const note = bytes(checkpoint);
  for (let at = 0; at < note.length; at++) {
    await assert.rejects(openCheckpoint(flipped(note, at), v.key), (e) => e instanceof Fault || e instanceof TypeError, `byte ${at}`);
  }
  for (let at = 0; at < v.key.length; at++) {
    const key = new TextDecoder().decode(flipped(utf8.encode(v.key), at));
    await assert.rejects(openCheckpoint(note, key), Fault, `byte ${at} of the key`);
  }
  await assert.rejects(openCheckpoint(bytes(v.foreign), v.key), Fault);
  const all = new TextDecoder().decode(note);
  for (const other of [all.trimEnd(), `${all}\n`, all.replace("\n257\n", "\n0257\n"), all.replace("\n\n", "\nmore\n\n"), ""]) {
    await assert.rejects(openCheckpoint(utf8.encode(other), v.key), Fault);
  }
});

test("what the key has signed for another log, or written in another way, is refused", async () => {
  // The key of the vectors, as TestVectorsAreCurrent makes it.
  const key = createPrivateKey({ key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, 1)]), format: "der", type: "pkcs8" });
  const [name, id] = v.key.split("+");
  const signed = (/** @type {string} */ text) => {
    const signature = Buffer.concat([Buffer.from(id ?? "", "hex"), sign(null, Buffer.from(text), key)]).toString("base64");
    return { note: `${text}\n— ${name} ${signature}\n`, signature };
  };
  const root = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
  const { note, signature } = signed(`${name}\n5\n${root}\n`);
  assert.equal((await openCheckpoint(utf8.encode(note), v.key)).size, 5);
  for (const text of [`facet/other/log\n5\n${root}\n`, `${name}\n05\n${root}\n`, `${name}\n5\n${root}\nmore\n`, `${name}\n5\n${root.replace("A=", "B=")}\n`, `${name}\n5\nAAAA\n`]) {
    await assert.rejects(openCheckpoint(utf8.encode(signed(text).note), v.key), Fault, text);
  }
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const last = signature.at(-2) ?? "";
  const other = `${signature.slice(0, -2)}${alphabet[alphabet.indexOf(last) ^ 1]}=`; // the same bytes
  assert.deepEqual(Buffer.from(other, "base64"), Buffer.from(signature, "base64"));
  await assert.rejects(openCheckpoint(utf8.encode(note.replace(signature, other)), v.key), Fault);
});

test("a witness's line beside the log's changes nothing", async () => {
  const all = new TextDecoder().decode(bytes(vectorOf(7).checkpoint));
  const with2 = utf8.encode(`${all}— example.com/w1 ${base64(new Uint8Array(76).fill(7))}\n`);
  assert.equal((await openCheckpoint(with2, v.key)).size, 7);
});

test("a browser without Ed25519 says so, and gives no green tick", async () => {
  const { importKey } = crypto.subtle;
  crypto.subtle.importKey = () => Promise.reject(new DOMException("no such algorithm", "NotSupportedError"));
  try {
    assert.equal((await openCheckpoint(bytes(vectorOf(7).checkpoint), v.key)).signed, false);
  } finally {
    crypto.subtle.importKey = importKey;
  }
});

/** lookAt reads a log as a browser that has seen some, and returns what is wrong. @param {Log} log @param {import("../web/auditlog.js").Seen[]} seen */
async function lookAt(log, seen) {
  const audit = new AuditLog("A", readerOf(log));
  try {
    return { audit, head: await audit.head(seen), fault: "" };
  } catch (e) {
    if (!(e instanceof Fault)) throw e;
    return { audit, head: undefined, fault: e.message };
  }
}

test("a log that was cut, forked, reordered or replaced is refused", async () => {
  const first = await lookAt(honest(257), []);
  assert.ok(first.head);
  const seen = first.audit.remember([], first.head);
  assert.equal((await lookAt(honest(1000), seen)).head?.older, 257);
  assert.equal((await lookAt(honest(66_000), seen)).fault, "");
  assert.equal((await lookAt(honest(257), seen)).fault, "");
  assert.equal((await lookAt(honest(256), seen)).fault, t.rolledBack(257, 256));
  assert.equal(first.audit.absent(seen), t.rolledBack(257, 0));
  const whole = await lookAt(honest(1000), seen);
  assert.ok(whole.head);
  const later = whole.audit.remember(seen, whole.head);
  assert.equal(later.length, 1);
  const changed = logOf(1000, v.changed, { 500: "changed" });
  const swapped = logOf(1000, v.swapped, { 500: "entry 501", 501: "entry 500" });
  for (const log of [changed, swapped]) {
    assert.equal((await lookAt(log, seen)).fault, "", "it is whole in itself, and this browser saw nothing of what is changed");
    assert.equal((await lookAt(log, later)).fault, t.forked(1000));
  }
  const foreign = logOf(1000, v.foreign);
  assert.notEqual((await lookAt(foreign, [])).fault, "", "another key than the log's");
  foreign.files.set("key", utf8.encode(v.other));
  assert.equal((await lookAt(foreign, later)).fault, t.otherKey);
  const elsewhere = [{ ...later[0], origin: "facet/other/log" }];
  assert.equal((await lookAt(honest(1000), /** @type {any} */ (elsewhere))).fault, t.otherKey, "another log of this access key");
});

test("a record that is not the tree's is found", async () => {
  const log = honest(1000);
  const { audit, head } = await lookAt(log, []);
  assert.ok(head);
  const content = bytes(v.records[0]?.content ?? "");
  assert.equal((await audit.prove(head, 500, base64(content))).fault, t.notIncluded);
  assert.equal((await audit.prove(head, 500, undefined)).fault, "", "the hash of a record past its retention");
  assert.equal((await audit.prove(head, 1000, undefined)).fault, t.beyond(1000));
  const tile = log.files.get("tile/0/001");
  assert.ok(tile);
  log.files.set("tile/0/001", flipped(tile, (500 - 256) * 32));
  const again = new AuditLog("A", readerOf(log));
  assert.equal((await again.prove(head, 500, undefined)).fault, t.notIncluded);
  log.files.set("tile/0/001", tile.subarray(32));
  assert.match((await new AuditLog("A", readerOf(log)).prove(head, 500, undefined)).fault, /bytes/);
});

test("records are read as the server reads them, and each byte counts", () => {
  for (const { content, shown } of v.records) {
    const { number: _, ...want } = shown;
    assert.deepEqual({ ...readRecord(bytesOf(content)) }, { ...want, time: new Date(want.time).toISOString() });
    const all = bytesOf(content);
    for (let end = 0; end < all.length; end++) assert.throws(() => readRecord(all.subarray(0, end)), `${end} bytes of ${all.length}`);
    assert.throws(() => readRecord(new Uint8Array([...all, 0])), Fault);
  }
  const unknown = new Uint8Array([1, 1, 0xa2, 2, 5, 0x18, 99, 0x42, 0xab, 0xcd]); // {2: 5, 99: h'abcd'}
  assert.deepEqual(readRecord(unknown), { time: "1970-01-01T00:00:00.005Z", kind: "request", others: { 99: "abcd" } });
});

test("a tile's path has groups of three digits", () => {
  assert.deepEqual(tileIn(0, 1_234_067, 256 * 1_234_068), { path: "tile/0/x001/x234/067", width: 256 });
  assert.deepEqual(tileIn(1, 0, 1000), { path: "tile/1/000.p/3", width: 3 });
});

test("a proof is a text of tlog-proof", async () => {
  const { checkpoint, inclusion } = vectorOf(3);
  const proof = inclusion[0]?.hashes.map(bytesOf) ?? [];
  const text = proofText({ index: 0, content: utf8.encode("entry 0"), proof, note: bytes(checkpoint) });
  assert.equal(text, `c2sp.org/tlog-proof@v1\nextra ZW50cnkgMA==\nindex 0\n${inclusion[0]?.hashes.join("\n")}\n\n${new TextDecoder().decode(bytes(checkpoint))}`);
});
