#!/usr/bin/env bash
# Fails if the release workflow or a Dockerfile uses an action, a tool or an image that its author can change later.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

failed=0
# refuse FILE TEXT: names a reference that is not pinned.
refuse() {
    echo "not pinned: $1: $2"
    failed=1
}

workflow=.github/workflows/release.yml
while read -r action; do
    # An action of this repository has the version of the release.
    [[ $action == ./* || $action =~ @[0-9a-f]{40}$ ]] || refuse "$workflow" "$action"
done < <(sed -nE 's/^[[:space:]]*(- )?uses:[[:space:]]*([^[:space:]#]+).*$/\2/p' "$workflow")
while read -r tool; do
    [[ $tool =~ @[0-9]+\.[0-9]+\.[0-9]+$ ]] || refuse "$workflow" "tool: $tool"
done < <(sed -nE 's/^[[:space:]]*tool:[[:space:]]*([^[:space:]#]+).*$/\1/p' "$workflow")
while read -r toolchain; do
    [[ $toolchain =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || refuse "$workflow" "rustup toolchain $toolchain"
done < <(sed -nE 's/^.*rustup toolchain install ([^[:space:]]+).*$/\1/p' "$workflow")

# Images that the workflow runs: the builder, and the scanner that lists its contents.
while read -r image; do
    [[ $image =~ @sha256:[0-9a-f]{64}$ ]] || refuse "$workflow" "$image"
done < <(sed -nE 's/^[[:space:]]*(driver-opts|sbom):[[:space:]]*((image|generator)=)?([^[:space:]#]+).*$/\4/p' "$workflow")
[[ $(grep -c setup-buildx-action@ "$workflow") == $(grep -cE '^[[:space:]]*driver-opts: image=' "$workflow") ]] ||
    refuse "$workflow" "setup-buildx-action without its image"
while read -r version; do
    [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || refuse "$workflow" "setup-helm with version ${version:-latest}"
done < <(grep -A2 setup-helm@ "$workflow" | awk '/setup-helm@/ { if (n++) print v; v = "" } /version:/ { v = $2 } END { if (n) print v }')

while read -r file; do
    # Such a line names an image that reads the file.
    if grep -qiE '^#[[:space:]]*syntax=' "$file"; then refuse "$file" "a syntax line"; fi
    stages=" "
    while read -r image as; do
        # An earlier stage, nothing, or an image that an argument names.
        case "$image" in
        scratch | \$*) ;;
        *@sha256:*) [[ $image =~ @sha256:[0-9a-f]{64}$ ]] || refuse "$file" "$image" ;;
        *) [[ $stages == *" $image "* ]] || refuse "$file" "$image" ;;
        esac
        stages+="${as:-} "
    done < <(sed -nE 's/^FROM[[:space:]]+(--[^[:space:]]+[[:space:]]+)*([^[:space:]]+)([[:space:]]+[Aa][Ss][[:space:]]+([^[:space:]]+))?.*$/\2 \4/p' "$file")
done < <(find contrib -name Dockerfile | sort)
exit "$failed"
