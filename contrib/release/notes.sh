#!/usr/bin/env bash
# Prints the section of the changelog about a version: the text of the release.
#
#   notes.sh [VERSION]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=${1:-$(contrib/release/version.sh)}
# The section begins with `## 0.1.0` or `## [0.1.0]`, with or without a date.
awk -v version="$version" '
    /^## / {
        name = $2
        gsub(/[][]/, "", name)
        sub(/^v/, "", name)
        inside = (name == version)
        if (inside) found = 1
        next
    }
    inside { print }
    END { exit !found }
' CHANGELOG.md || {
    echo "CHANGELOG.md has no section \`## $version\`" >&2
    exit 1
}
