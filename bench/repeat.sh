#!/usr/bin/env bash
# Runs the benchmark several times and keeps its lines: bench/repeat.sh ROUNDS [what `tenure bench` takes]
# Each line says the commit and the load of the machine, so that lines of several versions may stand in one file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rounds=${1:?how many rounds?}
shift
kept=.tenure/bench.jsonl
mkdir -p .tenure
[[ -e .tenure/.gitignore ]] || echo '*' >.tenure/.gitignore
cargo build --release --quiet -p tenure-cli
commit=$(git describe --always --dirty)
for ((round = 1; round <= rounds; round++)); do
    load=$(cut -d ' ' -f 1 /proc/loadavg)
    "${CARGO_TARGET_DIR:-target}/release/tenure" bench "$@" |
        sed -u "s/}\$/,\"commit\":\"$commit\",\"load\":$load}/" | tee -a "$kept"
done
echo "kept in $kept" >&2
