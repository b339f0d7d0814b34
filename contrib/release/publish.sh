#!/usr/bin/env bash
# Publishes the crates whose version is not on crates.io yet, in the order of their dependencies. Run it again after a
# failure: it goes on with the rest. Arguments are handed to `cargo publish`, such as --dry-run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$(contrib/release/version.sh)
crates=$(cargo metadata --no-deps --format-version 1 | jq -r '.packages[] | select(.publish != []) | .name')
packages=()
for crate in $crates; do
    if cargo info --quiet --registry crates-io "$crate@$version" >/dev/null 2>&1; then
        echo "$crate $version is published"
    else
        packages+=(--package "$crate")
    fi
done
if [ "${#packages[@]}" -eq 0 ]; then exit 0; fi
cargo publish --locked "${packages[@]}" "$@"
