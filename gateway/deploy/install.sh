#!/bin/sh
# Installs the newest Goblin of a folder of releases into ~/.local/bin:
#
#   GOBLIN_RELEASES=https://… sh install.sh
#
# The folder is that of one release: SHA256SUMS and the archives that it names. What was
# downloaded is checked against it before anything of it is unpacked. PREFIX says where
# else to install; the program goes into its bin.
set -eu

die() {
  echo "install.sh: $*" >&2
  exit 1
}

[ -n "${GOBLIN_RELEASES:-}" ] || die "set GOBLIN_RELEASES to the address of the folder that holds SHA256SUMS"
prefix=${PREFIX:-$HOME/.local}

system=$(uname -s)
case $system in
  Linux) system=linux ;;
  Darwin) system=darwin ;;
  *) die "there is no release for $system here; on Windows take the zip" ;;
esac
machine=$(uname -m)
case $machine in
  x86_64 | amd64) machine=amd64 ;;
  aarch64 | arm64) machine=arm64 ;;
  *) die "there is no release for $machine; build it with Go: go build ." ;;
esac

if command -v curl >/dev/null; then
  fetch() { curl -fsSL --retry 3 -o "$2" "$1"; }
elif command -v wget >/dev/null; then
  fetch() { wget -q -O "$2" "$1"; }
else
  die "neither curl nor wget is installed"
fi
if command -v sha256sum >/dev/null; then
  sum() { sha256sum "$1"; }
elif command -v shasum >/dev/null; then
  sum() { shasum -a 256 "$1"; }
else
  die "neither sha256sum nor shasum is installed, so that nothing could be checked"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch "$GOBLIN_RELEASES/SHA256SUMS" "$work/SHA256SUMS" || die "cannot get $GOBLIN_RELEASES/SHA256SUMS"
line=$(grep -E "^[0-9a-f]{64}  goblin_[0-9A-Za-z.+-]+_${system}_${machine}\.tar\.gz\$" "$work/SHA256SUMS") ||
  die "$GOBLIN_RELEASES/SHA256SUMS names no archive for $system on $machine"
[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || die "$GOBLIN_RELEASES/SHA256SUMS names several archives for $system on $machine"
wanted=${line%% *}
archive=${line##* }

fetch "$GOBLIN_RELEASES/$archive" "$work/$archive" || die "cannot get $GOBLIN_RELEASES/$archive"
got=$(sum "$work/$archive")
[ "${got%% *}" = "$wanted" ] || die "$archive is not what SHA256SUMS says: its sum is ${got%% *}, not $wanted. Nothing was installed"

tar -xzf "$work/$archive" -C "$work"
folder=$work/${archive%.tar.gz}
mkdir -p "$prefix/bin"
# In two steps, so that a Goblin that runs is replaced at once or not at all.
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
  *) echo "$prefix/bin is not in your PATH: add it, or start $prefix/bin/goblin" ;;
esac
