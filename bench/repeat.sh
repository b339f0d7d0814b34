#!/usr/bin/env bash
# Runs `tenure bench` several times and appends its lines to .tenure/bench.jsonl.
#
# Usage: bench/repeat.sh ROUNDS [OPTION of `tenure bench`]...
# Example: bench/repeat.sh 5 --floor --figure life
#
# Each line names the commit and the load of the machine, so one file can hold lines of several versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:?missing ROUNDS; example: bench/repeat.sh 5 --floor --figure life}
shift
results=.tenure/bench.jsonl
mkdir -p .tenure
[[ -e .tenure/.gitignore ]] || echo '*' >.tenure/.gitignore
# The profile of shipped binaries; `--release` has no fat LTO.
cargo build --profile dist --quiet -p tenure-cli
commit=$(git describe --always --dirty)
for ((round = 1; round <= rounds; round++)); do
    load=$(cut -d ' ' -f 1 /proc/loadavg)
    "${CARGO_TARGET_DIR:-target}/dist/tenure" bench "$@" |
        sed -u "s/}\$/,\"commit\":\"$commit\",\"load\":$load}/" | tee -a "$results"
done
echo "results are in $results" >&2
