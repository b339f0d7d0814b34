#!/usr/bin/env bash
# Prints the version of the workspace, or its oldest supported Rust.
#
#   version.sh            0.1.0
#   version.sh --msrv     1.94
#   version.sh --check v0.1.0
#                         fails unless the tag, the chart, the compose file, the pages and the changelog name this version
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

field() {
    awk -F '"' -v name="$1" '/^\[/ { inside = ($0 == "[workspace.package]") } inside && $1 == name " = " { print $2 }' Cargo.toml
}

version=$(field version)
wrong=0
# expect FILE PATTERN: FILE has a line that matches the extended regular expression.
expect() {
    if ! grep -Eq -- "$2" "$1"; then
        echo "$1: no line matches $2" >&2
        wrong=1
    fi
}

case "${1:-}" in
"") echo "$version" ;;
--msrv) field rust-version ;;
--check)
    tag=${2:?usage: version.sh --check TAG}
    if [ "$tag" != "v$version" ]; then
        echo "the tag is $tag, but Cargo.toml names the version $version" >&2
        wrong=1
    fi
    literal=${version//./\\.}
    expect contrib/helm/Chart.yaml "^version: $literal\$"
    expect contrib/helm/Chart.yaml "^appVersion: \"$literal\"\$"
    expect contrib/docker/compose.yaml "^x-image: &image ghcr\.io/tenure-rs/tenure:$literal\$"
    expect contrib/docker/worker/Dockerfile "^ARG TENURE=ghcr\.io/tenure-rs/tenure:$literal\$"
    expect contrib/helm/README.md "--version $literal( |\$)"
    required=$version
    if [[ $version != *-* ]]; then required=${version%.*}; fi
    for page in docs/guide/first-job.md docs/guide/in-your-service.md; do
        expect "$page" "^tenure = \"${required//./\\.}\"\$"
    done
    expect CHANGELOG.md "^## \[?v?$literal\]?( |\$)"
    exit "$wrong"
    ;;
*)
    echo "usage: version.sh [--msrv | --check TAG]" >&2
    exit 2
    ;;
esac
