#!/usr/bin/env bash
# Writes the bill of materials of the program (CycloneDX, JSON). Needs cargo-cyclonedx.
#
#   sbom.sh OUT
set -euo pipefail

out=${1:?usage: sbom.sh OUT}
mkdir -p "$out"
out=$(realpath "$out")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$(contrib/release/version.sh)

# It writes one file beside each manifest of the workspace.
trap 'find . -name tenure-sbom.json -not -path "./target/*" -delete' EXIT
cargo cyclonedx --quiet --format json --spec-version 1.5 --target all --override-filename tenure-sbom --manifest-path crates/tenure-cli/Cargo.toml
mv crates/tenure-cli/tenure-sbom.json "$out/tenure-v$version.cdx.json"
echo "$out/tenure-v$version.cdx.json"
