#!/usr/bin/env bash
# Fills in the Homebrew formula: contrib/homebrew/tenure.rb with the version and the checksums of a release.
#
#   formula.sh SHA256SUMS >tenure.rb
set -euo pipefail

sums=$(realpath "${1:?usage: formula.sh SHA256SUMS}")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$(contrib/release/version.sh)

sum() {
    awk -v name="tenure-v$version-$1.tar.gz" '$2 == name { print $1; found = 1 } END { exit !found }' "$sums" || {
        echo "$sums has no line for tenure-v$version-$1.tar.gz" >&2
        exit 1
    }
}

script="s/@VERSION@/$version/g"
for target in x86_64-apple-darwin aarch64-apple-darwin x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
    checksum=$(sum "$target")
    script+="; s/@SHA256:$target@/$checksum/"
done
# The comment at the top describes the template.
sed -e '/^#/d' -e "$script" contrib/homebrew/tenure.rb
