import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { startInstallation } from '../acceptance/installation.ts'
import { blocksIn } from '../documents/blocks.ts'
import { makeAgent } from './agents.ts'
import { connectAgent } from './clients.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
after(() => installation.stop())
const url = `${installation.gateways[0]?.agentUrl}/mcp`
const { secret } = await makeAgent(installation.pool)

const document = readFileSync(path.join(ROOT, 'docs/agents.md'), 'utf8')
const section = document.slice(document.indexOf('## Connecting'), document.indexOf('## Money'))
const snippets = [...section.matchAll(/^\*\*([^*]+)\*\*[^\n]*\n\n```(\w+)\n([^`]+)```/gm)]

/** Where each has the address and the credential, in the form that its agent reads. */
const READ: Readonly<Record<string, (snippet: string) => { readonly url: string; readonly header: string }>> = {
  'Claude Code': (line) => {
    const [, at = '', header = ''] = /^claude mcp add --transport http \S+ (\S+) --header "([^"]+)"$/m.exec(line) ?? []
    return { url: at, header }
  },
  Codex: (toml) => {
    const [, at = ''] = /^url = "([^"]+)"$/m.exec(toml) ?? []
    assert.match(toml, /^bearer_token_env_var = "FAREBOX_KEY"$/m)
    return { url: at, header: `Authorization: Bearer ${secret}` }
  },
  Cursor: (json) => ofServer(JSON.parse(json).mcpServers.farebox),
  'VS Code': (json) => ofServer(JSON.parse(json).servers.farebox),
  'Claude Desktop': (json) => {
    const { command, args } = JSON.parse(json).mcpServers.farebox
    assert.deepEqual([command, args[0], args[2]], ['npx', 'mcp-remote', '--header'])
    return { url: args[1], header: args[3] }
  },
  'A program of your own': (code) => {
    const [, at = ''] = /new URL\('([^']+)'\)/.exec(code) ?? []
    const [, value = ''] = /Authorization: '([^']+)'/.exec(code) ?? []
    return { url: at, header: `Authorization: ${value}` }
  },
}

function ofServer({ url: at, headers }: { url: string; headers: Record<string, string> }) {
  return { url: at, header: `Authorization: ${headers.Authorization}` }
}

describe('the snippets of docs/agents.md', () => {
  it('are one for each of the usual agents', () => {
    assert.deepEqual(
      snippets.map(([, name]) => name),
      Object.keys(READ),
    )
    const files = (language: string) => language === 'json' || language === 'toml'
    assert.deepEqual(
      snippets.filter(([, , language = '']) => files(language)).map(([, , , code = '']) => code.trim()),
      blocksIn('docs/agents.md', document)
        .filter(({ language }) => files(language))
        .map(({ code }) => code),
    )
  })

  for (const [, name = '', , snippet = ''] of snippets)
    it(`connect with their address and their header: ${name}`, async () => {
      const filled = snippet.replaceAll('<mcp_url>', url).replaceAll('<key>', secret)
      const read = READ[name]?.(filled)
      assert.equal(read?.url, url)
      const [, sent = ''] = /^Authorization: Bearer (\S+)$/.exec(read.header) ?? []
      const client = await connectAgent('sdk 2', read.url, sent)
      assert.equal((await client.tools()).length, 5)
      await client.close()
    })
})
