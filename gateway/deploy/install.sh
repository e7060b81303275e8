#!/bin/sh
# Installs Goblin from a release folder into ~/.local/bin:
#
#   GOBLIN_RELEASES=https://… sh install.sh
#
# The folder contains SHA256SUMS and the archives of one release. The download is verified
# before it is unpacked. Set PREFIX to install into $PREFIX/bin instead.
set -eu

die() {
  echo "install.sh: $*" >&2
  exit 1
}

[ -n "${GOBLIN_RELEASES:-}" ] || die "set GOBLIN_RELEASES to the URL of the folder with SHA256SUMS"
prefix=${PREFIX:-$HOME/.local}

system=$(uname -s)
case $system in
  Linux) system=linux ;;
  Darwin) system=darwin ;;
  *) die "no release for $system; on Windows use the zip" ;;
esac
machine=$(uname -m)
case $machine in
  x86_64 | amd64) machine=amd64 ;;
  aarch64 | arm64) machine=arm64 ;;
  *) die "no release for $machine; build it with Go: go build ." ;;
esac

if command -v curl >/dev/null; then
  fetch() { curl -fsSL --retry 3 -o "$2" "$1"; }
elif command -v wget >/dev/null; then
  fetch() { wget -q -O "$2" "$1"; }
else
  die "curl or wget is required"
fi
if command -v sha256sum >/dev/null; then
  sum() { sha256sum "$1"; }
elif command -v shasum >/dev/null; then
  sum() { shasum -a 256 "$1"; }
else
  die "sha256sum or shasum is required to verify the download"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch "$GOBLIN_RELEASES/SHA256SUMS" "$work/SHA256SUMS" || die "cannot download $GOBLIN_RELEASES/SHA256SUMS"
line=$(grep -E "^[0-9a-f]{64}  goblin_[0-9A-Za-z.+-]+_${system}_${machine}\.tar\.gz\$" "$work/SHA256SUMS") ||
  die "$GOBLIN_RELEASES/SHA256SUMS has no archive for $system/$machine"
[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || die "$GOBLIN_RELEASES/SHA256SUMS has several archives for $system/$machine"
wanted=${line%% *}
archive=${line##* }

fetch "$GOBLIN_RELEASES/$archive" "$work/$archive" || die "cannot download $GOBLIN_RELEASES/$archive"
got=$(sum "$work/$archive")
[ "${got%% *}" = "$wanted" ] || die "checksum mismatch of $archive: got ${got%% *}, want $wanted; nothing was installed"

tar -xzf "$work/$archive" -C "$work"
folder=$work/${archive%.tar.gz}
mkdir -p "$prefix/bin"
# Replace a running Goblin atomically.
cp "$folder/goblin" "$prefix/bin/.goblin.new"
chmod 755 "$prefix/bin/.goblin.new"
mv -f "$prefix/bin/.goblin.new" "$prefix/bin/goblin"
for page in "$folder"/man/*.1.gz; do
  [ -f "$page" ] || continue
  mkdir -p "$prefix/share/man/man1"
  cp "$page" "$prefix/share/man/man1/"
done
echo "installed $("$prefix/bin/goblin" --version) as $prefix/bin/goblin"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) echo "$prefix/bin is not in your PATH; add it, or run $prefix/bin/goblin" ;;
esac
