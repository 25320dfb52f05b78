import type { Tab } from '../../site/code.ts'
import type { HeaderNames } from '../../wording/header-names.ts'

export type SnippetParts = {
  readonly baseUrl: string | undefined
  readonly mcpUrl: string | undefined
  readonly provider: string
  readonly headerNames: Pick<HeaderNames, 'cost'>
}

const BODY = '{"query": "a quick animal", "documents": ["a snail", "a fox", "a stone"]}'

/** A first call and the tools that people use, with the key in them where it is known. */
export function snippets(
  { baseUrl, mcpUrl, provider, headerNames }: SnippetParts,
  secret: string | null,
): readonly Tab[] {
  const base = baseUrl ?? 'http://127.0.0.1:8700'
  const key = secret ?? '$FAREBOX_KEY'
  const variable = secret === null ? '' : `export FAREBOX_KEY='${secret}'\n`
  const name = provider.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return [
    {
      title: 'curl',
      code: `curl -i ${base}/v1/rerank \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '${BODY}'`,
    },
    {
      title: 'Python',
      code: `import json, os, urllib.request

request = urllib.request.Request(
    "${base}/v1/rerank",
    data=json.dumps(${BODY}).encode(),
    headers={"Authorization": "Bearer " + ${secret === null ? 'os.environ["FAREBOX_KEY"]' : `"${secret}"`}, "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as answer:
    print(answer.headers["${headerNames.cost}"])
    print(answer.read().decode())`,
    },
    {
      title: 'TypeScript',
      code: `import { env } from 'node:process'
import { Farebox } from '@farebox/client'

const farebox = new Farebox({ baseUrl: '${base}', apiKey: ${secret === null ? "env.FAREBOX_KEY ?? ''" : `'${secret}'`} })
const { data, cost } = await farebox.call('rerank', ${BODY.replaceAll('"', "'").replace("'query'", 'query').replace("'documents'", 'documents')})
console.log(data, cost?.usd)`,
    },
    {
      title: 'Claude Code',
      code: `${variable}export ANTHROPIC_BASE_URL=${base}
export ANTHROPIC_AUTH_TOKEN="$FAREBOX_KEY"
claude${mcpUrl === undefined ? '' : `\n\n# Or as tools, beside your own model:\nclaude mcp add --transport http ${name} ${mcpUrl} --header "Authorization: Bearer $FAREBOX_KEY"`}`,
    },
    {
      title: 'Codex',
      code: `${variable}cat >> ~/.codex/config.toml <<'END'
model_provider = "${name}"
[model_providers.${name}]
name = "${provider}"
base_url = "${base}/v1"
env_key = "FAREBOX_KEY"
wire_api = "responses"
END
codex`,
    },
  ]
}
