#!/usr/bin/env bash
# Compares the public API of each library with its newest version on crates.io. Needs cargo-semver-checks.
#
# A crate that was never published has nothing to be compared with, and is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

libraries=$(cargo metadata --no-deps --format-version 1 | jq -r '
    .packages[] | select(.publish != []) | select(any(.targets[]; .kind == ["lib"])) | .name')
for library in $libraries; do
    if cargo info --quiet --registry crates-io "$library" >/dev/null 2>&1; then
        cargo semver-checks --package "$library"
    else
        echo "$library is not on crates.io yet"
    fi
done
