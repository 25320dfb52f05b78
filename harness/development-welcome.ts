export type Addresses = Readonly<
  Record<
    | ('base_url' | 'mcp_url' | 'site_url' | 'admin_url' | 'sandbox_url' | 'database_url')
    | ('api_key' | 'agent_key' | 'master_key'),
    string
  >
>

/** What `npm run dev` tells people: where everything is, and what to paste. */
export function welcome(addresses: Addresses, seconds: string): string {
  const { base_url, site_url, mcp_url, admin_url, sandbox_url, api_key, agent_key, database_url, master_key } =
    addresses
  return `
Farebox is ready after ${seconds} s.

  gateway    ${base_url}
  website    ${site_url}
  agents     ${mcp_url}   (five tools over MCP; docs/agents.md)
  metrics    ${admin_url}/metrics
  sandbox    ${sandbox_url}   (simulated upstreams; docs/sandbox.md)
  mail       ${sandbox_url}/mail   (what people would be sent)
  database   ${database_url}
  key        ${api_key}   (100 USD of test money; the same in every run)
  agent key  ${agent_key}   (the same money, 5 USD a month)

Make a metered call, and see in its headers what it cost:

  curl -i ${base_url}/v1/rerank \\
    -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' \\
    -d '{"query": "a quick animal", "documents": ["a snail", "a fox", "a stone"]}'

Let a model answer, as it comes; its last frame has the cost:

  curl -N ${base_url}/v1/chat/completions \\
    -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' \\
    -d '{"model": "sandbox/echo", "stream": true, "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": "Hello"}]}'

Then look at the bill:

  curl '${base_url}/v1/usage?start_time=1' -H 'Authorization: Bearer ${api_key}'

From a program, with the SDK that you have already:

  // JavaScript: npm install openai
  import OpenAI from 'openai'
  const client = new OpenAI({ baseURL: '${base_url}/v1', apiKey: '${api_key}' })
  const answer = await client.chat.completions.create({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] })
  console.log(answer.choices[0].message.content)

  # Python: pip install openai
  from openai import OpenAI
  client = OpenAI(base_url="${base_url}/v1", api_key="${api_key}")
  answer = client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])
  print(answer.choices[0].message.content)

Let an agent use it, here Claude Code:

  claude mcp add --transport http farebox ${mcp_url} --header "Authorization: Bearer ${agent_key}"

Copy this to another terminal, in this folder. It is all that README.md, examples/ and docs/ need:

  export FAREBOX_URL='${base_url}' FAREBOX_KEY='${api_key}'
  export BASE_URL="$FAREBOX_URL" API_KEY="$FAREBOX_KEY"   # as samples in docs/ call them
  export FAREBOX_DATABASE_URL='${database_url}'   # for the command farebox, with the next one
  export FAREBOX_SECRETS_MASTER_KEY='${master_key}'
  export PATH="$PWD/node_modules/.bin:$PATH"   # the project's own Node, and the command farebox

Then, for example:

  bash examples/curl-stream.sh
  node examples/openai-sdk.ts
  farebox accounts list

Ctrl-C stops everything and deletes this run's database.`
}
