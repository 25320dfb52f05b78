import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { ConfigError, loadConfig } from '../config.ts'
import { createKnownDocuments } from './known-documents.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'farebox-clients-'))
after(() => rmSync(folder, { recursive: true }))

function configured(content: string) {
  const file = path.join(folder, 'clients.json')
  writeFileSync(file, content)
  const env = { FAREBOX_DATABASE_URL: 'postgres://x@127.0.0.1/x', FAREBOX_OAUTH_CLIENT_DOCUMENTS: file }
  return loadConfig(env).oauth.client_documents ?? []
}

const OURS = 'https://claude.ai/oauth/claude-code-client-metadata'
const MORE = 'https://agents.harbour.example/client.json'
const document = (client_id: string, client_name: string) => ({
  ...{ client_id, client_name },
  redirect_uris: ['http://127.0.0.1/callback'],
})

describe('documents of clients that an operator brings along', () => {
  it('are known beside ours, and in place of one of ours', () => {
    const known = createKnownDocuments(configured(JSON.stringify([document(MORE, 'Harbour'), document(OURS, 'Newer')])))
    assert.equal(known(MORE)?.client_name, 'Harbour')
    assert.deepEqual(known(MORE)?.redirect_uris, ['http://127.0.0.1/callback'])
    assert.equal(known(OURS)?.client_name, 'Newer')
    assert.equal(createKnownDocuments([])(OURS)?.client_name, 'Claude Code')
    assert.equal(createKnownDocuments([])(MORE), null)
  })

  it('are refused at the start where the file is none of such documents', () => {
    for (const content of ['{', '{}', '[{}]', JSON.stringify([document('http://plain.example/x', 'X')])])
      assert.throws(() => configured(content), ConfigError, content)
  })
})
