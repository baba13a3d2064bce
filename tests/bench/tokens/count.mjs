// count.mjs TREE MODULES OUT - writes the corpus with the token counts of real tokenizers to OUT, one
// line of JSON a piece: {"kind", "source", "text", "tokens": {tokenizer: n}}.
import fs from "node:fs";
import { corpus } from "./corpus.mjs";
import { tokenizers } from "./tokenizers.mjs";

const [tree, modules, out] = process.argv.slice(2);
const count = Object.entries(tokenizers(modules));
const file = fs.openSync(out, "w");
for (const [kind, sources] of Object.entries(corpus(tree, modules)))
  sources.forEach((list, source) => {
    for (const text of list) {
      const tokens = Object.fromEntries(count.map(([name, f]) => [name, f(text)]));
      fs.writeSync(file, JSON.stringify({ kind, source, text, tokens }) + "\n");
    }
  });
