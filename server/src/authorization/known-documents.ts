import { readClientMetadata } from './client-metadata.ts'
import type { Payload } from './states.ts'

type Known = {
  readonly url: string
  /** When it was written down, and what it was read from. */
  readonly date: string
  readonly source: string
  readonly name: string
  readonly redirects: readonly string[]
}

const LOOPBACK = ['http://127.0.0.1/callback', 'http://localhost/callback']

/**
 * What well-known clients say of themselves, brought along for installations that can't reach their hosts. What a host says itself goes
 * before: these hold only where it does not answer.
 */
export const KNOWN_DOCUMENTS: readonly Known[] = [
  {
    url: 'https://claude.ai/oauth/claude-code-client-metadata',
    date: '2026-11-19',
    source: 'https://github.com/anthropics/claude-code/issues/64705',
    name: 'Claude Code',
    redirects: LOOPBACK,
  },
  {
    url: 'https://chatgpt.com/oauth/codex/client.json',
    date: '2026-11-19',
    source: 'public code that accepts it; its redirect addresses as Codex 0.154 sends them',
    name: 'Codex',
    redirects: LOOPBACK,
  },
  {
    url: 'https://vscode.dev/oauth/client-metadata.json',
    date: '2026-11-19',
    source: 'copies of it in public code',
    name: 'Visual Studio Code',
    redirects: ['http://127.0.0.1:33418/', 'https://vscode.dev/redirect'],
  },
  {
    url: 'https://opencode.ai/oauth/opencode/client.json',
    date: '2026-11-19',
    source: 'https://github.com/anomalyco/opencode/pull/47737',
    name: 'opencode',
    redirects: LOOPBACK,
  },
]

export type ClientDocument = {
  readonly client_id: string
  readonly client_name: string
  readonly redirect_uris: readonly string[]
}

const OURS: readonly ClientDocument[] = KNOWN_DOCUMENTS.map(({ url, name, redirects }) => ({
  client_id: url,
  client_name: name,
  redirect_uris: redirects,
}))

/** Those of an operator stand in place of ours with the same URL. */
export function createKnownDocuments(more: readonly ClientDocument[]): (url: string) => Payload | null {
  const byUrl = new Map([...OURS, ...more].map((one) => [one.client_id, payloadOf(one)]))
  return (url) => byUrl.get(url) ?? null
}

function payloadOf({ client_id, client_name, redirect_uris }: ClientDocument): Payload {
  const document = {
    ...{ client_name, redirect_uris },
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  return { ...readClientMetadata(document, 'document'), client_id }
}
