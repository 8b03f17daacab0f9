// Numbers and privacy in words.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  epsilonInWords,
  number,
  overrunsInWords,
  withPowers,
} from "../../../service/console/static/format.js";

test("overruns are put into words", () => {
  assert.equal(overrunsInWords(0), "no job took longer than planned or ended at a limit");
  assert.equal(
    overrunsInWords(1),
    "1 job took longer than planned or ended at a limit, which revealed its run time",
  );
  assert.equal(
    overrunsInWords(2),
    "2 jobs took longer than planned or ended at a limit, which revealed their run times",
  );
});

test("the smallest decimals of a text are shown as powers of ten, digit for digit", () => {
  const text = "epsilon 0.25 and delta 0.0000012345, plus at most 0.00001.";
  assert.equal(withPowers(text), "epsilon 0.25 and delta 1.2345×10⁻⁶, plus at most 1×10⁻⁵.");
  for (let zeros = 4; zeros < 18; zeros += 1) {
    assert.match(withPowers(`0.${"0".repeat(zeros)}1`), /^1×10⁻[⁰¹²³⁴⁵⁶⁷⁸⁹]+$/);
  }
});

test("large and small numbers have powers of ten, others have separators", () => {
  assert.equal(number(0), "0");
  assert.equal(number(12_345.678), "12,350");
  assert.equal(number(2.5e-6), "2.5×10⁻⁶");
  assert.equal(number("none"), "–");
});

test("epsilon is put into words", () => {
  const words = epsilonInWords("1", "0.000001", "row");
  for (const part of ["2.72 times as likely", "73.1% sure", "one in 1,000,000"])
    assert.ok(words.includes(part));
  const pure = epsilonInWords("1", "0", "person");
  assert.ok(!pure.includes("except"));
  assert.ok(pure.includes("a person's records"));
});
