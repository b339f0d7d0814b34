#!/usr/bin/env bash
# Packs the program for one target, under the name that `cargo binstall` and the install script expect.
#
#   archive.sh TARGET PROGRAM OUT
#
# PROGRAM is the built binary; it has to run on this machine, because it prints its own completions and manual pages.
# Two runs over the same commit make the same archive.
set -euo pipefail

target=${1:?usage: archive.sh TARGET PROGRAM OUT}
program=$(realpath "${2:?usage: archive.sh TARGET PROGRAM OUT}")
out=${3:?usage: archive.sh TARGET PROGRAM OUT}
mkdir -p "$out"
out=$(realpath "$out")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$(contrib/release/version.sh)
built=$("$program" --version)
if [ "$built" != "tenure $version" ]; then
    echo "$program is '$built', but Cargo.toml names the version $version" >&2
    exit 1
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/completions" "$folder/man"
install -m 755 "$program" "$folder/tenure"
install -m 644 README.md LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$folder"
"$program" completions bash >"$folder/completions/tenure.bash"
"$program" completions zsh >"$folder/completions/_tenure"
"$program" completions fish >"$folder/completions/tenure.fish"
"$program" man --dir "$folder/man" >/dev/null

archive="$out/tenure-v$version-$target.tar.gz"
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
tar=tar
if command -v gtar >/dev/null; then tar=gtar; fi
options=()
if [[ $("$tar" --version) == *GNU* ]]; then
    options=(--sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner)
fi
# By name: an entry for the folder itself would change the folder into which the archive is unpacked. Without the variable, macOS
# adds a file with attributes for each file.
(cd "$folder" && COPYFILE_DISABLE=1 "$tar" ${options[@]+"${options[@]}"} -cf - -- *) | gzip -n -9 >"$archive"
echo "$archive"
