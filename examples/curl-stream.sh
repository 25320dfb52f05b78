#!/usr/bin/env bash
# Streams the answer of a model with curl. The cost stands in the usage of the last frame.
set -euo pipefail
: "${FAREBOX_URL:?Set FAREBOX_URL to the address of the gateway}" "${FAREBOX_KEY:?Set FAREBOX_KEY to an API key}"

frames=$(mktemp)
trap 'rm -f "$frames"' EXIT

# -N shows each frame as it comes. --fail-with-body exits with an error where the gateway refuses, and shows why.
curl --silent --show-error --fail-with-body -N "$FAREBOX_URL/v1/chat/completions" \
  -H "Authorization: Bearer $FAREBOX_KEY" \
  -H 'Content-Type: application/json' \
  -d '{
    "model": "sandbox/echo",
    "stream": true,
    "stream_options": { "include_usage": true },
    "messages": [{ "role": "user", "content": "Hello from curl" }]
  }' | tee "$frames"

cost=$(sed -n 's/.*"cost_usd": *"\([0-9.]*\)".*/\1/p' "$frames")
echo "cost: $cost USD"
