#!/usr/bin/env bash
# Makes what compose.yaml needs and nobody else may have: passwords, the master key, and a certificate for localhost. Keeps what is there.
set -euo pipefail
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
[ -s secrets/database-password ] || openssl rand -hex 24 > secrets/database-password
printf 'postgres://farebox:%s@postgres:5432/farebox' "$(cat secrets/database-password)" > secrets/database-url
# Keep a copy: if it is lost, what it sealed is lost.
[ -s secrets/master-key ] || openssl rand -base64 32 > secrets/master-key
if [ ! -s secrets/certificate.pem ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
    -addext 'subjectAltName=DNS:localhost,DNS:*.localhost' -keyout secrets/key.pem -out secrets/cert.pem 2>/dev/null
  cat secrets/cert.pem secrets/key.pem > secrets/certificate.pem
fi
# The containers run as uid 65532 and as haproxy: they have to read them. The folder lets nobody else in.
chmod 644 secrets/*
echo "Made deploy/compose/secrets. Keep a copy of secrets/master-key. Next: docker compose up --detach --wait"
