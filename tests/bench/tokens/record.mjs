// record.mjs MODULES < TEXTS > COUNTS - the counts that tests/golden/token_counts.json holds.
//
// TEXTS is what `test_agent_estimate_golden --write` prints: {"kind", "piece", "hash", "text"} a line.
import fs from "node:fs";
import { tokenizers } from "./tokenizers.mjs";

const count = tokenizers(process.argv[2]);
const names = Object.keys(count);
const rows = fs
  .readFileSync(0, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line))
  .map(({ kind, piece, hash, text }) => JSON.stringify({ kind, piece, hash, tokens: names.map((name) => count[name](text)) }));
console.log(`{"tokenizers": ${JSON.stringify(names)}, "texts": [\n${rows.join(",\n")}\n]}`);
