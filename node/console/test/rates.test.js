// The threshold lab's rates beside the definitions of ISO/IEC 19795-1, written down plainly.
import assert from "node:assert/strict";
import { test } from "node:test";
import { alarms, histogram, rates, wilson } from "../web/rates.js";

const thresholds = [4000, 5000, 6000, 7000, 9999];

/**
 * @typedef {{ persons: number[], score: (i: number, j: number) => number }} Photos score is -1 for none
 */

/**
 * draw returns photos of up to 8 persons, with random scores of which some are missing.
 * @param {number} seed
 * @returns {Photos}
 */
function draw(seed) {
  const next = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const persons = Array.from({ length: 2 + Math.floor(next() * 30) }, () => Math.floor(next() * 8));
  const scores = persons.map((_, i) => Array.from({ length: i }, (_, j) => (next() < 0.1 ? -1 : Math.floor(next() * (persons[i] === persons[j] ? 10000 : 8000)))));
  return { persons, score: (i, j) => scores[i]?.[j] ?? -1 };
}

/** @param {Photos} photos */
function packed({ persons, score }) {
  const pairs = persons.flatMap((_, i) => Array.from({ length: i }, (_, j) => score(i, j)));
  return { persons: Int32Array.from(persons), scores: Int16Array.from(pairs) };
}

/**
 * plain returns the scores of pairs of one person and of two.
 * @param {Photos} photos
 */
function plain({ persons, score }) {
  const all = persons.flatMap((a, i) => persons.flatMap((b, j) => (j < i && score(i, j) >= 0 ? [{ mated: a === b, score: score(i, j) }] : [])));
  return { mated: all.filter((p) => p.mated).map((p) => p.score), others: all.filter((p) => !p.mated).map((p) => p.score) };
}

test("rates equal their definitions", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const photos = draw(seed);
    const { mated, others } = plain(photos);
    for (const r of rates(packed(photos), thresholds)) {
      const at = `seed ${seed}, threshold ${r.threshold}`;
      const falseMatches = others.filter((s) => s >= r.threshold).length;
      const misses = mated.filter((s) => s < r.threshold).length;
      assert.equal(r.falseMatches, falseMatches, at);
      assert.equal(r.misses, misses, at);
      assert.equal(r.fmr, falseMatches / Math.max(1, others.length), at);
      assert.equal(r.fnmr, misses / Math.max(1, mated.length), at);
    }
  }
});

test("intervals hold the rate, and are never narrower than Wilson's", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const photos = draw(seed);
    const { mated, others } = plain(photos);
    for (const r of rates(packed(photos), thresholds)) {
      for (const [rate, [low, high], events, trials] of /** @type {const} */ ([[r.fmr, r.fmrInterval, r.falseMatches, others.length], [r.fnmr, r.fnmrInterval, r.misses, mated.length]])) {
        const at = `seed ${seed}, threshold ${r.threshold}, ${events} of ${trials}`;
        const [least, most] = wilson(events, trials);
        assert.ok(0 <= low && low <= rate && rate <= high, `${at}: ${low} ${rate} ${high}`);
        assert.ok(low <= least && high >= most, at);
      }
    }
  }
});

test("the same photos have the same intervals", () => {
  const photos = packed(draw(7));
  assert.deepEqual(rates(photos, thresholds), rates(photos, thresholds));
});

test("Wilson's interval is that of the books", () => {
  /** @type {(events: number, trials: number, low: number, high: number) => void} */
  const f = (events, trials, low, high) => {
    const [l, h] = wilson(events, trials);
    assert.ok(Math.abs(l - low) < 5e-5 && Math.abs(h - high) < 5e-5, `${events} of ${trials}: ${l} ${h}`);
  };
  // Newcombe 1998, table I.
  f(81, 263, 0.2553, 0.3662);
  f(15, 148, 0.0624, 0.1605);
  f(0, 20, 0, 0.1611);
  f(1, 29, 0.0061, 0.1718);
  f(0, 0, 0, 1);
  f(20, 20, 0.8389, 1);
  for (let n = 1; n < 2000; n = 3 * n + 1) {
    for (const events of [0, 1, Math.floor(n / 2), n]) {
      const [low, high] = wilson(events, n);
      // Its bounds are those rates p at which the events lie 1.96 deviations away.
      for (const p of [low, high].filter((p) => p > 1e-9 && p < 1 - 1e-9)) {
        assert.ok(Math.abs(Math.abs(events / n - p) / Math.sqrt((p * (1 - p)) / n) - 1.959964) < 1e-6, `${events} of ${n}`);
      }
    }
  }
});

test("histograms count each score once", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const photos = draw(seed);
    const bins = histogram(packed(photos));
    for (const [counted, scores] of /** @type {const} */ ([[bins.mated, plain(photos).mated], [bins.others, plain(photos).others]])) {
      assert.deepEqual([...counted], Array.from({ length: 100 }, (_, b) => scores.filter((s) => Math.floor(s / 100) === b).length));
    }
  }
});

test("alarms are searches with a false match among all people", () => {
  /** @type {(fmr: number, people: number, searches: number, want: number) => void} */
  const f = (fmr, people, searches, want) => {
    const got = alarms(fmr, people, searches);
    assert.ok(Math.abs(got - want) <= 1e-9 * Math.max(1, want), `${got}, want ${want}`);
  };
  f(0, 1000, 500, 0);
  f(1, 1000, 500, 500);
  f(0.5, 2, 100, 75);
  f(0.001, 1000, 500, 500 * (1 - 0.999 ** 1000));
  f(1e-15, 1, 1, 1e-15);
});

test("no pair and no photo break nothing", () => {
  const none = { persons: Int32Array.from([]), scores: Int16Array.from([]) };
  assert.deepEqual(rates(none, [7000])[0]?.fmrInterval, [0, 1]);
  const unscored = { persons: Int32Array.from([0, 0, 1]), scores: Int16Array.from([-1, -1, -1]) };
  assert.deepEqual(rates(unscored, [7000])[0], { threshold: 7000, falseMatches: 0, fmr: 0, fmrInterval: [0, 1], misses: 0, fnmr: 0, fnmrInterval: [0, 1] });
});
