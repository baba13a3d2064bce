#!/bin/sh
# Builds a git repository with 24 price lists to convert. Usage: make-repository.sh DIR
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 DIR" >&2
	exit 2
fi
if [ -e "$1" ] && [ -n "$(ls -A "$1")" ]; then
	echo "$0: '$1' is not empty" >&2
	exit 2
fi
mkdir -p "$1"
cd "$1"

# Dates, names and settings are fixed, so that commit ids are the same on every machine.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME="Ada Example" GIT_AUTHOR_EMAIL=ada@example.org
export GIT_COMMITTER_NAME="Ada Example" GIT_COMMITTER_EMAIL=ada@example.org
export GIT_AUTHOR_DATE="2026-03-01T10:00:00Z" GIT_COMMITTER_DATE="2026-03-01T10:00:00Z"
git init -q -b main .
git config user.name "Ada Example"

mkdir -p data out
for n in $(seq -w 1 24); do
	{
		echo "article,price"
		for i in $(seq 1 60); do
			echo "article-$n-$i of the list number $n,$((i * 7 + 3)).50"
		done
	} >"data/$n.csv"
done
touch out/.gitkeep
cat >README.md <<'EOF'
# lists

24 price lists in `data/`. `sh next.sh` converts the next one into `out/` and commits it; `sh check.sh` counts what is done.
EOF
cat >next.sh <<'EOF'
# Converts the next price list that has no JSON yet, shows it, and commits it.
for csv in data/*.csv; do
	json=out/$(basename "$csv" .csv).json
	[ -e "$json" ] && continue
	awk -F, 'NR > 1 { printf "{\"article\": \"%s\", \"price\": %s}\n", $1, $2 }' "$csv" >"$json"
	cat "$json"
	git add "$json" && git commit -q -m "Convert $csv"
	echo "$csv is converted, $(ls out/*.json | wc -l) of 24"
	exit 0
done
echo "no list is left"
EOF
cat >check.sh <<'EOF'
# Every list has its JSON, with as many articles.
bad=0
for csv in data/*.csv; do
	json=out/$(basename "$csv" .csv).json
	[ -e "$json" ] && [ "$(wc -l <"$json")" -eq 60 ] || { echo "missing: $json"; bad=1; }
done
[ $bad -eq 0 ] && echo "all 24 lists are whole"
exit $bad
EOF
git add -A
git commit -q -m "Price lists"

echo "repository: $(pwd)"
echo "let an agent convert them with: baton run 'Convert all price lists. Never change a file in data/.'"
