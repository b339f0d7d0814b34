#!/usr/bin/env bash
# Checks and packs the Helm chart. Needs helm.
#
#   chart.sh OUT
set -euo pipefail

out=${1:?usage: chart.sh OUT}
mkdir -p "$out"
out=$(realpath "$out")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$(contrib/release/version.sh)

helm lint --strict contrib/helm
helm package contrib/helm --version "$version" --app-version "$version" --destination "$out"
