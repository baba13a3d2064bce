#!/bin/sh
# Builds a small repository with hooks of its own. Usage: make-repository.sh DIR
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
git config user.email ada@example.org

mkdir -p .baton/hooks
cat >README.md <<'END'
# Notes

What happened, one line a commit.
END
cat >.baton/config.yaml <<'END'
hooks:
  SessionStart:
    - command: "echo 'The newest commits:'; git -C $BATON_WORKTREE log --oneline -3"
  PreToolUse:
    - matcher: shell
      command: hooks/guard.sh
      timeout: 5s
      required: true
  PostToolUse:
    - matcher: write|edit
      command: "cat >>$TMPDIR/changes.jsonl"
  PreCompact:
    - command: "echo 'the questions that are still open'"
END
cat >.baton/hooks/guard.sh <<'END'
#!/bin/sh
# Reads the call as JSON; exit 2 denies it with what stands on stderr.
call=$(cat)
case $call in
*"git push"*) echo "this project is pushed by people only" >&2; exit 2 ;;
*"rm -rf /"*) echo "nothing is deleted from the root" >&2; exit 2 ;;
esac
END
chmod +x .baton/hooks/guard.sh
git add -A
git commit -q -m "Start the notes"
