#!/usr/bin/env bash
# Compares the public API of the libraries that promise a stable one with their newest version on crates.io. Needs
# cargo-semver-checks. docs/releasing.md lists these libraries; the others may change in any version.
#
# A crate that was never published has nothing to be compared with, and is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

packages=()
for library in tenure tenure-http tenure-ui tenure-sqlx tenure-conformance; do
    if cargo info --quiet --registry crates-io "$library" >/dev/null 2>&1; then
        packages+=(--package "$library")
    else
        echo "$library is not on crates.io yet"
    fi
done
if [ "${#packages[@]}" -eq 0 ]; then exit 0; fi
cargo semver-checks "${packages[@]}"
