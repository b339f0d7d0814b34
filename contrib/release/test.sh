#!/usr/bin/env bash
# Rehearses a release on this machine: sets the next versions in a copy of the repository, packs archives, writes their
# checksums, fills in the formula, and installs from a folder that looks like the releases page. Nothing is built; a
# script stands in for the program unless one is named.
#
#   test.sh [PROGRAM]
set -euo pipefail
repository=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
release="$repository/contrib/release"
version=$("$release/version.sh")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "FAILED: $1" >&2
    exit 1
}

# A pre-release, the next minor version, and a patch of it, in a copy.
copy="$scratch/copy"
mkdir "$copy"
(cd "$repository" && tar --exclude=target --exclude=.git --exclude=node_modules -cf - .) | tar -xf - -C "$copy"
IFS=. read -r major minor _ <<<"$version"
for next in "$major.$((minor + 1)).0-rc.1" "$major.$((minor + 1)).0" "$major.$((minor + 1)).1"; do
    "$copy/contrib/release/bump.sh" "$next" >"$scratch/out" 2>&1 || fail "bump.sh $next: $(cat "$scratch/out")"
    [ "$("$copy/contrib/release/version.sh")" = "$next" ] || fail "bump.sh $next sets another version"
    if "$copy/contrib/release/version.sh" --check "v$next" 2>/dev/null; then
        fail "version.sh --check passes without an entry in the changelog for $next"
    fi
    awk -v next_version="$next" '
        { print }
        /^## \[Unreleased\]/ { printf "\n## [%s] - 2030-01-01\n\nWords about %s.\n", next_version, next_version }
    ' "$copy/CHANGELOG.md" >"$scratch/changelog"
    cp "$scratch/changelog" "$copy/CHANGELOG.md"
    "$copy/contrib/release/version.sh" --check "v$next" 2>"$scratch/out" || fail "after bump.sh $next: $(cat "$scratch/out")"
    "$copy/contrib/release/notes.sh" | grep -q "^Words about $next\.$" || fail "notes.sh does not print the entry of $next"
    # Every crate of the workspace has the version of the workspace, and those are the crates without a source.
    others=$(awk -v RS= -v next_version="$next" '
        /^\[\[package\]\]/ && !/\nsource = / && index($0, "version = \"" next_version "\"\n") == 0 { print $4 }
    ' "$copy/Cargo.lock")
    [ -z "$others" ] || fail "bump.sh $next leaves other versions in Cargo.lock: $others"
done
rm -rf "$copy"

program=${1:-$scratch/stand-in}
cat >"$scratch/stand-in" <<STANDIN
#!/bin/sh
case \$1 in
--version) echo "tenure $version" ;;
completions) echo "# completions for \$2" ;;
man) echo ".TH TENURE 1" >"\$3/tenure.1" ;;
esac
STANDIN
chmod +x "$scratch/stand-in"

case $(uname -m) in
aarch64 | arm64) machine=aarch64 ;;
*) machine=x86_64 ;;
esac
case $(uname -s) in
Darwin) here=$machine-apple-darwin ;;
*) here=$machine-unknown-linux-musl ;;
esac

# Archives for every target, all with the program of this machine.
releases="$scratch/releases"
dist="$releases/download/v$version"
for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl x86_64-apple-darwin aarch64-apple-darwin; do
    packed=$scratch/stand-in
    if [ "$target" = "$here" ]; then packed=$program; fi
    "$release/archive.sh" "$target" "$packed" "$dist" >/dev/null
done
archive="$dist/tenure-v$version-$here.tar.gz"
listed=$(tar -tzf "$archive")
for file in tenure README.md LICENSE-MIT LICENSE-APACHE completions/tenure.bash man/tenure.1; do
    grep -qx "$file" <<<"$listed" || fail "the archive has no $file"
done

# The name is what `cargo binstall` computes from the manifest.
manifest="$repository/crates/tenure-cli/Cargo.toml"
url=$(sed -n 's/^pkg-url = "\(.*\)"$/\1/p' "$manifest" | sed "s/{ version }/$version/g; s/{ target }/$here/; s/{ repo }//")
[ "$url" = "/releases/download/v$version/$(basename "$archive")" ] || fail "binstall looks for $url"

# The same commit makes the same archive.
if [[ $(tar --version) == *GNU* ]]; then
    "$release/archive.sh" "$here" "$program" "$scratch/again" >/dev/null
    cmp "$archive" "$scratch/again/$(basename "$archive")" || fail "a second archive differs from the first"
fi

"$release/checksums.sh" "$dist" >/dev/null
[ "$(wc -l <"$dist/SHA256SUMS")" -eq 4 ] || fail "SHA256SUMS does not name four archives"
mkdir "$releases/latest"
ln -s "../download/v$version" "$releases/latest/download"

"$release/formula.sh" "$dist/SHA256SUMS" >"$scratch/tenure.rb"
if grep -q '@' "$scratch/tenure.rb"; then fail "the formula has a placeholder left"; fi
[ "$(grep -c "sha256 \"[0-9a-f]\{64\}\"" "$scratch/tenure.rb")" -eq 4 ] || fail "the formula does not have four checksums"
if command -v ruby >/dev/null; then ruby -c "$scratch/tenure.rb" >/dev/null || fail "the formula is not valid Ruby"; fi

# Install the newest release, and then one by its version over it.
export TENURE_RELEASES="file://$releases"
sh "$repository/contrib/install.sh" --to "$scratch/bin" >/dev/null
[ "$("$scratch/bin/tenure" --version)" = "tenure $version" ] || fail "the installed program has another version"
sh "$repository/contrib/install.sh" --version "v$version" --to "$scratch/bin" >"$scratch/out"
grep -q "installed $scratch/bin/tenure" "$scratch/out" || fail "a version could not be installed by its name"

# Refusals leave the installed program alone.
# refuses WORDS ARGUMENTS...
refuses() {
    local words=$1
    shift
    if sh "$repository/contrib/install.sh" --to "$scratch/other" "$@" >"$scratch/out" 2>&1; then
        fail "install.sh $* was not refused"
    fi
    grep -q "$words" "$scratch/out" || fail "install.sh $*: $(cat "$scratch/out")"
    [ ! -e "$scratch/other/tenure" ] || fail "install.sh $* installed a program"
}
refuses "cannot download" --version 99.0.0
refuses "unknown option" --nonsense
refuses "needs a value" --version
TENURE_RELEASES=http://example.com/releases refuses "not an https:// URL"
echo tampered >>"$archive"
refuses "SHA256SUMS says"
grep -v -- "-$here" "$dist/SHA256SUMS" >"$scratch/sums"
cp "$scratch/sums" "$dist/SHA256SUMS"
refuses "no archive for $here"

echo "ok: $version packed, installed and verified for $here"
