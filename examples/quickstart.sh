#!/usr/bin/env bash
# From a fresh clone to a first review: installs what is missing (apt), builds the programs, makes a small
# repository with planted defects, reviews it with a scripted model, and checks that they were found.
#
# No key, and no network but apt's. Everything that it makes lies in build/; run it as often as you like.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build
try=$build/quickstart
baton=$build/orchestrator/baton

fail() { echo "quickstart: $*" >&2; exit 1; }

./.ci/install-deps || fail "some packages are missing; see above"

if [ ! -f $build/build.ninja ]; then
	echo "configuring $build/"
	mkdir -p $build
	meson setup $build >$build/setup.log 2>&1 || { tail -20 $build/setup.log >&2; fail "the configuration failed"; }
fi
echo "building the programs in $build/ (the first time takes a minute or two)"
mkdir -p $try
programs=(orchestrator/baton orchestrator/gateway/baton-gateway worktrees/baton-git worktrees/box/baton-box
	agent/image/baton-image rehearsal/baton-rehearse)
ninja -C $build "${programs[@]}" >$try/build.log 2>&1 || { tail -40 $try/build.log >&2; fail "the build failed"; }

# Settings, trust and worktrees of its own: what you have configured neither helps nor hurts here.
rm -rf $try/parcels $try/count $try/home
mkdir -p $try/home
export XDG_CONFIG_HOME=$PWD/$try/home/config XDG_STATE_HOME=$PWD/$try/home/state
while IFS='=' read -r name _; do
	[[ $name == BATON_* ]] && unset "$name"
done < <(env)
./examples/review/make-repository.sh $try/parcels >/dev/null
./examples/fix/make-repository.sh $try/count >/dev/null

echo "reviewing the last two commits of $try/parcels"
$baton review -C $try/parcels HEAD~2..HEAD --model rehearsal:examples/review/scenario.yaml \
	--output $try/report.md --sarif $try/report.sarif >$try/review.log ||
	fail "the review ended with status $?; see $try/review.log"

# What was planted must stand, and the place that only looks like a defect must not.
cp $try/parcels/.git/baton/runs/*/report.json $try/report.json
python3 - $try/report.json $try/report.sarif <<'CHECK' || fail "the review did not find what was planted"
import json
import sys

PLANTED = {("src/parse.c", "off-by-one"), ("src/parse.c", "null-dereference"),
           ("src/store.c", "error-handling"), ("src/report.c", "resource-leak"),
           ("src/worker.c", "race"), ("tools/import.py", "injection")}
with open(sys.argv[1]) as f:
    report = json.load(f)
with open(sys.argv[2]) as f:
    sarif = json.load(f)
stands = set()
print()
for finding in report["result"]["findings"]:
    place = f"{finding['file']}:{finding['line']}"
    print(f"  {finding['severity']:9} {place:20} {finding['category']:17} {finding['verdict']}")
    if finding["verdict"] != "refuted":
        stands.add((finding["file"], finding["category"]))
for file, category in sorted(PLANTED - stands):
    print(f"missing: {category} in {file}", file=sys.stderr)
for file, category in sorted(stands - PLANTED):
    print(f"not planted: {category} in {file}", file=sys.stderr)
results = len(sarif["runs"][0]["results"])
if results != len(stands):
    print(f"the SARIF file has {results} results for {len(stands)} findings", file=sys.stderr)
sys.exit(stands != PLANTED or results != len(stands))
CHECK

cat <<END

All planted defects were found, and the one false claim was refuted. The report:
  Markdown  $try/report.md
  JSON      $try/report.json
  SARIF     $try/report.sarif

Next, an agent that repairs a failing test, still without a key:
  $baton run -C $try/count --model rehearsal:examples/fix/scenario.yaml 'make test fails: find out why and repair it'
The same review by a real model (costs money; at most a dollar here):
  ANTHROPIC_API_KEY=... $baton review -C $try/parcels HEAD~2..HEAD --model anthropic/claude-opus-5 --max-cost 1
END
