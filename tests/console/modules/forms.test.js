// What people type, as the service takes it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decimal } from "../../../service/console/static/forms.js";

const WRITTEN = {
  "1e-6": "0.000001",
  "2.5E-3": "0.0025",
  "1e2": "100",
  "1.25e1": "12.5",
  0.000001: "0.000001",
  "0,5": "0.5",
  ",5": "0.5",
  "1.": "1",
  "2,5e-3": "0.0025",
  "1e+2": "100",
  " 3 ": "3",
};

for (const [written, sent] of Object.entries(WRITTEN)) {
  test(`the amount "${written}" is sent as an exact decimal`, () => assert.equal(decimal(written), sent));
}
