#!/usr/bin/env bash
# Runs each benchmark once in its short form: they build, run and print. smoke.sh BUILD
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
"$build/tests/bench/bench_render" | tail -3
python3 tests/bench/bench_run.py "$build" --quick
