#!/usr/bin/env bash
# Checks the files of contrib and .github with the linters that are installed. `--all` fails if one is missing, and
# `--pinned` if a release would use an action, a tool or an image that can change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

failed=0
missing=0
# lint TOOL ARGUMENTS...: runs the tool if it is there.
lint() {
    if ! command -v "$1" >/dev/null; then
        echo "skipped: $1 is not installed"
        missing=1
        return
    fi
    if "$@"; then echo "ok: $1"; else
        echo "FAILED: $*"
        failed=1
    fi
}

# `mapfile` would need a newer bash than macOS has.
scripts=()
while read -r file; do scripts+=("$file"); done < <(find contrib .ci -name '*.sh' -o -path .ci/run | sort)
dockerfiles=()
while read -r file; do dockerfiles+=("$file"); done < <(find contrib -name Dockerfile | sort)
workflows=()
while read -r file; do workflows+=("$file"); done < <(find .github/workflows -name '*.yml' | sort)
yaml=()
while read -r file; do yaml+=("$file"); done < <(find contrib -name '*.yaml' -not -path '*/templates/*' | sort)

lint shellcheck "${scripts[@]}"
lint hadolint "${dockerfiles[@]}"
lint yamllint --strict --config-file contrib/release/yamllint.yaml "${workflows[@]}" "${yaml[@]}"
lint check-jsonschema --builtin-schema vendor.github-workflows "${workflows[@]}"
lint check-jsonschema --builtin-schema vendor.compose-spec contrib/docker/compose.yaml
lint check-jsonschema --builtin-schema vendor.renovate .github/renovate.json
lint check-jsonschema --schemafile contrib/helm/values.schema.json contrib/helm/values.yaml
lint actionlint "${workflows[@]}"
lint helm lint --strict contrib/helm

for option in "$@"; do
    case "$option" in
    --all) if [ "$missing" = 1 ]; then failed=1; fi ;;
    --pinned) contrib/release/pinned.sh || failed=1 ;;
    *)
        echo "unknown option $option; expected --all or --pinned" >&2
        exit 2
        ;;
    esac
done
exit "$failed"
