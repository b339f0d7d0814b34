#!/bin/sh
# Installs the newest release of tenure for this machine, and verifies its checksum first.
#
#   curl --proto '=https' --tlsv1.2 -fsSL https://github.com/tenure-rs/tenure/releases/latest/download/install.sh | sh
#   ... | sh -s -- --version 0.1.0 --to /usr/local/bin
#
# Options:
#   --version VERSION  install this version instead of the newest one
#   --to FOLDER        install into this folder [default: $HOME/.local/bin]
#   --help             print this text
#
# Environment:
#   TENURE_RELEASES    a mirror of https://github.com/tenure-rs/tenure/releases, such as file:///mnt/mirror
set -eu

releases=${TENURE_RELEASES:-https://github.com/tenure-rs/tenure/releases}

usage() {
    cat <<'TEXT'
Installs the newest release of tenure for this machine, and verifies its checksum first.

Usage: install.sh [--version VERSION] [--to FOLDER]

Options:
  --version VERSION  install this version instead of the newest one
  --to FOLDER        install into this folder [default: $HOME/.local/bin]

Environment:
  TENURE_RELEASES    a mirror of https://github.com/tenure-rs/tenure/releases
TEXT
}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

# Prints the target of this machine, as the names of the archives have it.
target() {
    os=$(uname -s)
    machine=$(uname -m)
    # A shell under Rosetta reports the processor that Rosetta emulates.
    if [ "$os" = Darwin ] && [ "$machine" = x86_64 ] && [ "$(sysctl -n hw.optional.arm64 2>/dev/null || true)" = 1 ]; then
        machine=arm64
    fi
    case $machine in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "no release for the processor $machine; build it with: cargo install tenure-cli" ;;
    esac
    case $os in
    Linux) echo "$machine-unknown-linux-musl" ;;
    Darwin) echo "$machine-apple-darwin" ;;
    *) fail "no release for $os; on Windows, use WSL" ;;
    esac
}

# fetch URL FILE
fetch() {
    case $1 in
    https://* | file://* | http://127.0.0.1:* | http://localhost:*) ;;
    *) fail "$1 is not an https:// URL" ;;
    esac
    if command -v curl >/dev/null; then
        curl -fsSL --retry 3 -o "$2" "$1" || fail "cannot download $1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1" || fail "cannot download $1"
    else
        fail "curl or wget is needed"
    fi
}

# Prints the SHA-256 checksum of a file.
checksum() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        fail "sha256sum or shasum is needed to verify the download"
    fi
}

# The shell reads the whole function before it runs anything: a truncated download does nothing.
main() {
    version=
    folder=${HOME:-}/.local/bin
    while [ $# -gt 0 ]; do
        case $1 in
        --version | --to)
            [ $# -ge 2 ] || fail "$1 needs a value"
            if [ "$1" = --to ]; then folder=$2; else version=${2#v}; fi
            shift 2
            ;;
        --help | -h)
            usage
            exit 0
            ;;
        *) fail "unknown option $1; expected --version or --to" ;;
        esac
    done

    target=$(target)
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT TERM

    if [ -n "$version" ]; then from=$releases/download/v$version; else from=$releases/latest/download; fi
    fetch "$from/SHA256SUMS" "$scratch/SHA256SUMS"
    # Lines are `CHECKSUM  tenure-v0.1.0-TARGET.tar.gz`.
    line=$(grep -E "  tenure-v[^ /]+-$target\.tar\.gz\$" "$scratch/SHA256SUMS" || true)
    [ -n "$line" ] || fail "$from/SHA256SUMS has no archive for $target"
    expected=${line%% *}
    archive=${line##* }
    found=${archive#tenure-v}
    found=${found%-"$target".tar.gz}

    # By its version: a release that is published meanwhile cannot mix with this one.
    echo "downloading tenure $found for $target"
    fetch "$releases/download/v$found/$archive" "$scratch/$archive"
    actual=$(checksum "$scratch/$archive")
    [ "$actual" = "$expected" ] || fail "$archive has the checksum $actual, but SHA256SUMS says $expected"

    tar -xzf "$scratch/$archive" -C "$scratch" tenure
    "$scratch/tenure" --version >/dev/null || fail "the program does not run on this machine"
    mkdir -p "$folder" || fail "cannot create $folder; choose another folder with --to"
    # A rename within a folder replaces a program that is running.
    cp "$scratch/tenure" "$folder/.tenure.new" || fail "cannot write to $folder; choose another folder with --to"
    chmod 755 "$folder/.tenure.new"
    mv -f "$folder/.tenure.new" "$folder/tenure"
    echo "installed $folder/tenure"

    case ":${PATH:-}:" in
    *":$folder:"*) echo "try: tenure dev" ;;
    *) echo "$folder is not on your PATH; try: $folder/tenure dev" ;;
    esac
}

main "$@"
