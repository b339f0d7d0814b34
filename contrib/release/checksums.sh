#!/usr/bin/env bash
# Writes SHA256SUMS for all other files of a folder.
#
#   checksums.sh FOLDER
set -euo pipefail

cd "${1:?usage: checksums.sh FOLDER}"
rm -f SHA256SUMS
sha256=(sha256sum)
if ! command -v sha256sum >/dev/null; then sha256=(shasum -a 256); fi
files=(*)
if [ ! -f "${files[0]}" ]; then
    echo "there are no files in $PWD" >&2
    exit 1
fi
"${sha256[@]}" "${files[@]}" >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
cat SHA256SUMS
