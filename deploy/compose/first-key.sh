#!/usr/bin/env bash
# With the profile sandbox: sells the sandbox's models for test money, makes a customer with a key, and prints what to paste.
set -euo pipefail
cd "$(dirname "$0")/../.."
farebox() { docker compose exec -T worker /opt/farebox/bin/node /opt/farebox/main.js "$@"; }

farebox upstreams add sandbox http://sandbox:8701/openai --test
farebox models set sandbox/echo --context-window 128000 --output-most 16000
farebox models price sandbox/echo --input 1 --output 4
farebox models route sandbox/echo --slot sandbox --protocol openai --upstream-model echo
account=$(farebox accounts create --name 'First customer' --email owner@example.com | awk '/^Account/ { print $2 }')
key=$(farebox keys create "$account" --name first --test --budget 5/month | tail -1)
cat <<TEXT

  gateway   https://api.localhost:${FAREBOX_HTTPS_PORT:-8443}
  website   https://www.localhost:${FAREBOX_HTTPS_PORT:-8443}
  agents    https://agents.localhost:${FAREBOX_HTTPS_PORT:-8443}/mcp
  key       $key

Make a metered call, and see in its headers what it cost:

  curl -i --cacert deploy/compose/secrets/cert.pem https://api.localhost:${FAREBOX_HTTPS_PORT:-8443}/v1/chat/completions \\
    -H 'Authorization: Bearer $key' -H 'Content-Type: application/json' \\
    -d '{"model": "sandbox/echo", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}'
TEXT
