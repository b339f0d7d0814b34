#!/usr/bin/env bash
# Sets the version of every crate, of the chart and of the images, also on the pages that name it.
#
#   bump.sh 0.2.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

new=${1:-}
if ! [[ $new =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]]; then
    echo "usage: bump.sh VERSION, such as 0.2.0" >&2
    exit 2
fi
old=$(contrib/release/version.sh)
literal=${old//./\\.}

# replace FILE SCRIPT: edits FILE with sed; `-i` alone differs between GNU and BSD.
replace() {
    sed "$2" "$1" >"$1.new"
    cat "$1.new" >"$1"
    rm "$1.new"
}

replace Cargo.toml "/^version = /s/\"$literal\"/\"$new\"/; /path = \"/s/version = \"$literal\"/version = \"$new\"/"
replace contrib/helm/Chart.yaml "s/^version: $literal\$/version: $new/; s/^appVersion: \"$literal\"\$/appVersion: \"$new\"/"
for file in contrib/docker/compose.yaml contrib/docker/worker/Dockerfile; do
    replace "$file" "s|\\(ghcr.io/tenure-rs/tenure\\):$literal|\\1:$new|"
done
replace contrib/helm/README.md "s/--version $literal\$/--version $new/; s/--version $literal /--version $new /"
# As `cargo add` writes it: without the patch version. A pre-release has to be named in full.
required=$new
if [[ $new != *-* ]]; then required=${new%.*}; fi
for page in docs/guide/first-job.md docs/guide/in-your-service.md; do
    replace "$page" "/^tenure[a-z-]* = /s/ = \"[^\"]*\"/ = \"$required\"/"
done
# No other crate changes, so this needs no network if they are downloaded.
cargo update --quiet --workspace --offline 2>/dev/null || cargo update --quiet --workspace
echo "$old -> $new; next: add a section \`## $new\` to CHANGELOG.md, and run contrib/release/version.sh --check v$new"
