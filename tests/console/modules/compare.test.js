// Centres of two jobs side by side.

import assert from "node:assert/strict";
import { test } from "node:test";

import { matched } from "../../../service/console/static/pages/compare.js";

test("centres are paired with the closest one that is left", () => {
  const left = [
    [0, 0],
    [10, 0],
    [0, 100],
  ];
  const right = [
    [9, 0],
    [0, 90],
  ];
  const lengths = [1, 10]; // the second column is measured in units ten times as long
  assert.deepEqual(matched(left, right, lengths), [
    [1, 1, 0],
    [1, 2, 1],
  ]);
});
