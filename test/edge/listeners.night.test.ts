import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { type Conversation, converse } from './raw-http.ts'
import { CASES, type Case } from './smuggling-cases.ts'

/**
 * What each listener takes and how it refuses: a row for each method, path, content type, credential and Host that could be wrong. Then the
 * hostile bytes that the edge is tried with, against all of them.
 */
/** As long as the one in the hostile bytes, whose lengths are told in them. */
const HOSTS = { gateway: 'call', site: 'site', agent: 'tool', admin: 'm.io' } as const
type Listener = keyof typeof HOSTS

const database = await freshDatabase()
const gateway: Gateway = await startGateway({
  databaseUrl: database.url,
  env: {
    FAREBOX_HTTP_PUBLIC_URL: `https://${HOSTS.gateway}`,
    FAREBOX_HTTP_SITE_URL: `https://${HOSTS.site}`,
    FAREBOX_HTTP_MCP_URL: `https://${HOSTS.agent}/mcp`,
    FAREBOX_HTTP_ADMIN_HOSTS: HOSTS.admin,
    FAREBOX_HTTP_HEADERS_TIMEOUT_MS: '1000',
    FAREBOX_HTTP_REQUEST_TIMEOUT_MS: '1500',
  },
})
after(() => gateway.stop())
const PORTS: Readonly<Record<Listener, number>> = {
  gateway: portOf(gateway.url),
  site: portOf(gateway.siteUrl),
  agent: portOf(gateway.agentUrl),
  admin: portOf(gateway.adminUrl),
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}

type Response = Conversation['responses'][number]

/** How an answer looks, and that it is whole: a page, or JSON of one of the shapes. */
function shapeOf({ headers, body }: Pick<Response, 'headers' | 'body'>): string {
  const type = headers.get('content-type') ?? ''
  if (type.startsWith('text/html')) {
    assert.match(body, /^<!doctype html>.*<h1>.*<\/html>\n$/s)
    assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'; /)
    return 'page'
  }
  const json = JSON.parse(body)
  if (type.startsWith('application/problem+json')) {
    assert.deepEqual([typeof json.status, typeof json.detail, typeof json.code], ['number', 'string', 'string'])
    return 'problem'
  }
  if (json.type === 'error') return 'anthropic'
  if (Array.isArray(json.error?.details)) return 'gemini'
  return json.error !== undefined && 'param' in json.error ? 'openai' : 'data'
}

type Row = {
  readonly title: string
  readonly line: string
  readonly headers?: readonly string[]
  readonly body?: string
  readonly answers: Readonly<Record<Listener, string>>
}

const all = (answer: string): Row['answers'] => ({ gateway: answer, site: answer, agent: answer, admin: answer })
const KEY = 'Authorization: Bearer fb_test_nobody'
const FORM = 'Content-Type: application/x-www-form-urlencoded'

const ROWS: readonly Row[] = [
  {
    title: 'an unknown path',
    line: 'GET /nothing',
    answers: { gateway: '401 data', site: '404 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'an unknown path, with a credential that is none',
    line: 'GET /nothing',
    headers: [KEY],
    answers: { gateway: '401 data', site: '404 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: "an unknown path below a protocol's",
    line: 'GET /v1/nothing',
    answers: { gateway: '401 openai', site: '404 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: "another protocol's",
    line: 'POST /v1/messages',
    answers: { gateway: '401 anthropic', site: '404 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'an unknown path, asked for by a program',
    line: 'GET /nothing',
    headers: ['Accept: application/json'],
    answers: { gateway: '401 data', site: '404 problem', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: "the agents' tools, without a credential, whatever the method",
    line: 'DELETE /mcp',
    answers: { gateway: '401 data', site: '404 page', agent: '401 problem', admin: '404 problem' },
  },
  {
    title: 'a wrong method at the root',
    line: 'DELETE /',
    answers: { gateway: '401 data', site: '405 page', agent: '405 problem', admin: '404 problem' },
  },
  {
    title: 'a wrong method at the metrics',
    line: 'POST /metrics',
    answers: { gateway: '401 data', site: '404 page', agent: '404 problem', admin: '405 problem' },
  },
  {
    title: 'JSON where none is taken',
    line: 'POST /nothing',
    headers: ['Content-Type: application/json', 'Content-Length: 2'],
    body: '{}',
    answers: { gateway: '401 data', site: '404 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a form where none is taken',
    line: 'POST /v1/chat/completions',
    headers: [FORM, 'Content-Length: 3'],
    body: 'a=b',
    answers: { gateway: '401 openai', site: '404 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a target that is none',
    line: 'GET nothing',
    answers: { gateway: '400 data', site: '400 page', agent: '400 problem', admin: '400 problem' },
  },
  {
    title: 'a body that is too large',
    line: 'POST /nothing',
    headers: ['Content-Type: application/json', 'Content-Length: 99000000', 'Expect: 100-continue'],
    answers: { gateway: '401 data', site: '404 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a key in the URL',
    line: 'GET /nothing?api_key=x',
    answers: { gateway: '401 data', site: '400 page', agent: '400 problem', admin: '400 problem' },
  },
  {
    title: 'a page of people',
    line: 'GET /sign-in',
    answers: { gateway: '401 data', site: '200 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a page of people, with a method that it does not take',
    line: 'DELETE /sign-in',
    answers: { gateway: '401 data', site: '405 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a page behind signing in, which leads there first, with a method that it does not take',
    line: 'PUT /sessions',
    answers: { gateway: '401 data', site: '405 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a form of nobody',
    line: 'POST /sign-in',
    headers: [FORM, 'Content-Length: 3'],
    body: 'a=b',
    answers: { gateway: '401 data', site: '403 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a form that has a field twice',
    line: 'POST /sign-in',
    headers: [FORM, 'Content-Length: 7'],
    body: 'a=b&a=c',
    answers: { gateway: '401 data', site: '400 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'JSON in place of a form',
    line: 'POST /sign-in',
    headers: ['Content-Type: application/json', 'Content-Length: 2'],
    body: '{}',
    answers: { gateway: '401 data', site: '415 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a form that is too large',
    line: 'POST /sign-up',
    headers: [FORM, 'Content-Length: 17000'],
    body: `a=${'b'.repeat(16_998)}`,
    answers: { gateway: '401 data', site: '413 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a page of people, asked for by a program that may not have it',
    line: 'POST /sign-out',
    headers: ['Accept: application/json', FORM, 'Content-Length: 0'],
    answers: { gateway: '401 data', site: '403 problem', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a link that is none',
    line: 'GET /verify/nothing',
    answers: { gateway: '401 data', site: '400 page', agent: '404 problem', admin: '404 problem' },
  },
  {
    title: 'a page of people under another host',
    line: 'GET /sign-in',
    headers: ['Host: evil.example'],
    answers: { gateway: '401 data', site: '421 page', agent: '421 problem', admin: '421 problem' },
  },
  { title: 'the pulse', line: 'GET /livez', answers: all('200 data') },
  {
    title: 'the pulse, by another host',
    line: 'GET /livez',
    headers: ['Host: 10.0.0.9:8080'],
    answers: all('200 data'),
  },
  {
    title: 'another host',
    line: 'GET /',
    headers: ['Host: evil.example'],
    answers: { gateway: '200 data', site: '421 page', agent: '421 problem', admin: '421 problem' },
  },
  {
    title: 'an address in place of the host',
    line: 'GET /nothing',
    headers: ['Host: 127.0.0.1:9'],
    answers: { gateway: '401 data', site: '421 page', agent: '421 problem', admin: '404 problem' },
  },
  {
    title: 'the host in another case, with its port',
    line: 'GET /nothing',
    headers: ['Host: ALIAS'],
    answers: { gateway: '401 data', site: '404 page', agent: '404 problem', admin: '404 problem' },
  },
]

/** The answers to one row, in short. */
async function ask(listener: Listener, { line, headers = [], body = '' }: Row): Promise<string> {
  const own = HOSTS[listener]
  const named = headers.map((header) => (header === 'Host: ALIAS' ? `Host: ${own.toUpperCase()}:443` : header))
  const all = named.some((header) => header.startsWith('Host:')) ? named : [`Host: ${own}`, ...named]
  const bytes = `${line} HTTP/1.1\r\n${all.map((header) => `${header}\r\n`).join('')}\r\n${body}`
  const { responses } = await converse(PORTS[listener], bytes)
  assert.equal(responses.length, 1)
  const [response] = responses
  if (response === undefined) return ''
  assert.notEqual(response.headers.get('x-request-id'), undefined)
  return `${response.status} ${shapeOf(response)}`
}

describe('each listener', () => {
  for (const row of ROWS)
    for (const listener of ['gateway', 'site', 'agent', 'admin'] as const)
      it(`${listener}: ${row.title}: ${row.answers[listener]}`, async () => {
        assert.equal(await ask(listener, row), row.answers[listener])
      })

  it('shows people a page at the root, to GET and to HEAD, and its parts without asking who they are', async () => {
    const get = async (method: string, path: string) => {
      const { responses } = await converse(PORTS.site, `${method} ${path} HTTP/1.1\r\nHost: ${HOSTS.site}\r\n\r\n`)
      return responses[0] ?? assert.fail('no answer')
    }
    const home = await get('GET', '/')
    assert.equal(home.status, 200)
    assert.equal(shapeOf(home), 'page')
    assert.equal((await get('HEAD', '/')).body, '')
    const parts = [...home.body.matchAll(/href="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
    assert.equal(parts.length, 3)
    for (const path of parts) {
      const { status, headers } = await get('GET', path)
      assert.equal(status, 200, path)
      assert.match(headers.get('cache-control') ?? '', /immutable/)
    }
    assert.equal((await get('GET', '/assets/nothing.css')).status, 404)
  })
})

/** The same bytes for another host. */
function sentTo(host: string, { send }: Case): Case['send'] {
  const changed = (piece: string | Buffer) =>
    typeof piece === 'string'
      ? piece.replaceAll('Host: edge\r\n', `Host: ${host}\r\n`)
      : Buffer.from(piece.toString('latin1').replaceAll('Host: edge\r\n', `Host: ${host}\r\n`), 'latin1')
  return typeof send === 'string' || Buffer.isBuffer(send) ? changed(send) : send.map(changed)
}

/** The route that ends its connection is none of theirs, so that both requests are answered. */
const ENDED_BY_A_ROUTE = 'a request behind one whose route ends the connection'

describe('hostile bytes', () => {
  for (const listener of ['site', 'agent', 'admin'] as const)
    it(`get ${listener} to refuse each of ${CASES.length} in its own shape, and to live on`, async () => {
      const answered = await Promise.all(
        CASES.map(async (one) => {
          const quietMs = one.answers.includes(408) ? 4_000 : 500
          const { responses } = await converse(PORTS[listener], sentTo(HOSTS[listener], one), { quietMs })
          for (const response of responses) {
            assert.ok(response.status >= 400 && response.status < 500, `${one.title}: ${response.status}`)
            if (response.body !== '')
              assert.equal(shapeOf(response), listener === 'site' ? 'page' : 'problem', one.title)
          }
          const most = one.title === ENDED_BY_A_ROUTE ? 2 : Math.max(1, one.answers.length)
          assert.ok(responses.length <= most, `${one.title}: ${responses.length} answers`)
          return responses.length
        }),
      )
      assert.ok(answered.filter((count) => count > 0).length > CASES.length / 2)
      assert.equal(gateway.hasExited(), false)
    })
})
