// Calls functions of the explorer's mathematics: reads [[name, ...arguments], ...] as JSON from standard input, writes the
// results. Infinities and NaN are the strings "inf", "-inf" and "nan" both ways.

import * as math from "../../ipe/explorer/web/math/index.js";

const words = new Map([["inf", Infinity], ["-inf", -Infinity], ["nan", NaN]]);
const read = (key, value) => (typeof value === "string" && words.has(value) ? words.get(value) : value);
const write = (key, value) => {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
};

/** A whole run: the estimates and the behaviour's values before every step, and what it ended with. */
function replay(model, behaviour, settings, start, numbers) {
  let run = math.beginRun(model, behaviour, start);
  const estimates = [];
  const values = [];
  for (const pair of numbers) {
    estimates.push(math.estimates(run));
    values.push(math.behaviourValues(model, run, settings));
    run = math.stepRun(model, run, settings, pair);
  }
  return { estimates, values, run };
}

const text = await new Response(process.stdin).text();
const results = JSON.parse(text, read).map(([name, ...given]) => (name === "replay" ? replay(...given) : math[name](...given)));
process.stdout.write(JSON.stringify(results, write));
