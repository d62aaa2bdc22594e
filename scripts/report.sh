#!/usr/bin/env bash
# Runs the quick variant of every suite on this machine, one after the other, and draws a page of each and one over all. Cut short, it
# goes on where it stopped when it is run again. OUT names the folder, SUITES the suites, ARGS further arguments.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly all="primitives overheads capacity reuse-and-key-size handshake-flood offload continuous two-certificates platforms latency fleet"

main() {
  local suites=${SUITES:-$all} suite number=0 total
  total=$(wc -w <<<"$suites")
  cargo build --locked --release -p courser -p courser-bench
  local programs out
  programs=$(target_folder)/release
  out=${OUT:-$(target_folder)/report}
  mkdir -p "$out"
  for suite in $suites; do
    number=$((number + 1))
    echo "suite $number of $total: $suite" >&2
    run_suite "$programs/courser-bench" "$suite" "$out/$suite.json"
  done
  local records=()
  for suite in $suites; do records+=("$out/$suite.json"); done
  "$programs/courser-bench" report "${records[@]}" --index "$out" 2>/dev/null
  echo "$out/index.html"
}

# A record that is there already is gone on with: of a suite that was finished nothing is left to do.
run_suite() {
  local resume=() ended=0
  if [ -e "$3" ]; then resume=(--resume); fi
  "$1" run "$2" --quick --record "$3" "${resume[@]}" ${ARGS:-} >/dev/null || ended=$?
  # 3: a target failed in a case; the page says which and why, and the other suites go on.
  if [ "$ended" != 0 ] && [ "$ended" != 3 ]; then exit "$ended"; fi
}

# Where cargo builds: the environment or a configuration file may have moved it.
target_folder() {
  cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

main
