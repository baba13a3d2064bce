#!/usr/bin/env bash
# One job of baton against a model server that its authors did not write: tests/integration/peers/README.md.
#
#   tests/integration/peers.sh BUILD_DIR [WORD...]    WORD: only tests whose names contain it
#
# The server is installed once, below the build folder, by the pinned version and hash of
# peers/package-lock.json; after that nothing here needs a network. Exit: 0 passed, 1 failed.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: peers.sh BUILD_DIR [WORD...]}" && pwd) || exit 1
shift
peer=$build/peers
server=$peer/node_modules/@copilotkit/aimock/dist/cli.js
seconds=${BATON_PEERS_SECONDS:-420}

# A folder is complete if its lock file is the one it was installed from: that is copied last.
if ! cmp -s "$here/peers/package-lock.json" "$peer/installed.json" || [ ! -f "$server" ]; then
	echo "peers: installing the model server below $peer"
	mkdir -p "$peer" && cp "$here/peers/package.json" "$here/peers/package-lock.json" "$peer" || exit 1
	if ! timeout 120 npm ci --prefix "$peer" --ignore-scripts --no-audit --no-fund >"$peer/npm.log" 2>&1; then
		tail -20 "$peer/npm.log"
		echo "peers: npm could not install the model server"
		exit 1
	fi
	cp "$peer/package-lock.json" "$peer/installed.json"
fi

export BATON_BUILD=$build BATON_AIMOCK=$server PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
timeout --kill-after=15 "$seconds" python3 "$here/peers/test_peers.py" "$@"
status=$?
[ $status = 124 ] && echo "peers: not done within $seconds s"
[ $status = 0 ] || exit 1
