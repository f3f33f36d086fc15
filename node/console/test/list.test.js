// Lists of an import as people's programs write them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsOfFolder, rowsOfList } from "../web/list.js";
import { texts } from "../web/texts.js";

/** @param {string[]} paths from the chosen folder on */
const folder = (...paths) => paths.map((path) => Object.assign(new File(["x"], path.split("/").at(-1) ?? ""), { webkitRelativePath: path }));

const files = folder("people/ann/1.jpg", "people/bob/2.jpg", "people/3.jpg");

/** @param {string} text */
const rows = (text) => rowsOfList(new File([text], "list.csv"), files);

test("each photo of a folder is a row", () => {
  const some = folder("people/bob/2.jpg", "people/ann/1.JPG", "people/ann/notes.txt", "people/3.heic");
  assert.deepEqual(rowsOfFolder(some, true).map((r) => [r.row, r.name, r.externalId]), [[1, "3.heic", ""], [2, "ann/1.JPG", "ann"], [3, "bob/2.jpg", "bob"]]);
  assert.deepEqual(rowsOfFolder(some, false).map((r) => r.externalId), ["", "", ""]);
});

test("a list is read with its quotes, marks and separators", async () => {
  for (const comma of [",", ";", "\t"]) {
    for (const end of ["\n", "\r\n"]) {
      const line = (/** @type {string[]} */ ...fields) => fields.map((f) => (/[",;\t]/.test(f) ? `"${f.replaceAll('"', '""')}"` : f)).join(comma);
      const text = ["\uFEFF" + line("External_ID", "file", "tags", "user_data", "expires"), line('a "b", c; d', "ann/1.jpg", "staff;night", '{"n": 1}', "2030-01-02T03:04:05Z"), "", line("", "./bob\\2.jpg", "", "", "")].join(end) + end;
      const [first, second, ...more] = await rows(text);
      const at = JSON.stringify(text);
      assert.deepEqual(more, [], at);
      assert.deepEqual([first?.row, first?.externalId, first?.tags, first?.userData, first?.problem], [2, 'a "b", c; d', ["staff", "night"], { n: 1 }, undefined], at);
      assert.equal(first?.expires?.toISOString(), "2030-01-02T03:04:05.000Z", at);
      assert.equal(first?.file, files[0], at);
      assert.deepEqual([second?.row, second?.name, second?.file, second?.problem], [4, "bob/2.jpg", files[1], undefined], at);
    }
  }
});

test("names in Unicode's form D, of a Mac's folders, are brought to form C", async () => {
  const d = "Zoe\u0308";
  const some = folder(`people/${d}/1.jpg`);
  const list = new File([`external_id,file,tags\n${d},${d.normalize("NFC")}/1.jpg,${d};x\n`], "list.csv");
  const all = [...(await rowsOfList(list, some)), ...rowsOfFolder(some, true)];
  assert.deepEqual(all.map((r) => [r.externalId, r.tags.join(), r.file]), [["Zo\u00eb", "Zo\u00eb,x", some[0]], ["Zo\u00eb", "", some[0]]]);
});

test("rows that can't be used say why", async () => {
  const text = "file,user_data,expires\nnone.jpg,,\n3.jpg,{,\n3.jpg,,soon\n3.jpg,,\n";
  assert.deepEqual((await rows(text)).map((r) => r.problem), [texts.list.noFile, texts.list.noJSON, texts.list.noTime, undefined]);
});

test("a list without the column file is refused", async () => {
  await assert.rejects(rows("photo,tags\n3.jpg,x\n"), /must be file/);
  await assert.rejects(rows(""), /must be file/);
});

test("a list of too many bytes is refused before it is read", async () => {
  const list = new File(["file\n"], "list.csv");
  Object.defineProperty(list, "size", { value: 300 << 20 });
  list.text = () => assert.fail("the list was read");
  await assert.rejects(rowsOfList(list, files), /use facet import/);
});
