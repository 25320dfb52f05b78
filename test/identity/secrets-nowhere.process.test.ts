import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { request } from 'undici'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { type Postgres, startPostgres } from '../../harness/postgres.ts'
import { findAccessToken, revokeAccessToken } from '../../server/src/grants/access-tokens.ts'
import { listGrants, revokeGrant, setGrantBudget } from '../../server/src/grants/grants.ts'
import { changeKey, setKeyBudget, setKeyExpiry } from '../../server/src/identity/key-changes.ts'
import { hashOf, makeAccessToken, makeKey } from '../../server/src/identity/key-format.ts'
import { createKey, revokeKey, rotateKey } from '../../server/src/identity/keys.ts'
import { findKey, listKeys } from '../../server/src/identity/listed-keys.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import type { Pools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { connect } from '../ledger/world.ts'
import { ACTOR, anotherAddress, ids, makeCustomer, PROBE_SERVER } from './customers.ts'
import { FACES_ENV, issueToken, makeGranted, makeMember } from './granted.ts'
import { filesOf, needlesOf, type Place, rowsOf, search, textPlace } from './secrets-nowhere-search.ts'

/** PostgreSQL writes down every statement with its parameters: whatever we tell it is there to be found. */
const TALKATIVE = { logging_collector: 'on', log_directory: 'log', log_statement: 'all', log_parameter_max_length: -1 }

const keys: string[] = []
const lines: string[] = []
const answers: string[] = []
const statuses = new Set<number>()
let postgres: Postgres
let pools: Pools
let gateways: readonly Gateway[] = []

before(async () => {
  postgres = await startPostgres({ settings: TALKATIVE })
  await migrate({ url: new Secret(postgres.url()), log: silentLog })
  pools = connect(postgres.url()).pools
  gateways = await startGateways(2, {
    databaseUrl: postgres.url(),
    changes: PROBE_SERVER.changes,
    env: { ...PROBE_SERVER.env, ...FACES_ENV, FAREBOX_LOG_LEVEL: 'info' },
    onLine: (line) => lines.push(line),
  })
})
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await pools.close()
  await postgres.remove()
})

/** Every way in which keys come to be and come to an end; whatever is told of them afterwards is kept as an answer. */
async function useFunctions() {
  const parts = { pool: pools.rest, ids }
  const customer = await makeCustomer(pools.rest, { promotion: 1_000_000n })
  const { workspaceId, keyId } = customer
  const spare = await createKey(parts, ACTOR, { workspaceId, mode: 'test', name: 'spare', scopes: ['rerank'] })
  const replaced = customer.secret
  const rotated = (await rotateKey(parts, ACTOR, keyId)).reveal()
  const budget = { period: 'day', amount: nanos(5_000n) } as const
  await setKeyBudget(parts, ACTOR, keyId, budget)
  await setKeyExpiry(parts, ACTOR, keyId, new Date(Date.now() + 3_600_000))
  const doomed = await createKey(parts, ACTOR, { workspaceId, mode: 'live', name: 'doomed', budget })
  await revokeKey(parts, ACTOR, doomed.id)
  await changeKey(parts, ACTOR, keyId, { rates: { requestsPerMinute: 50 }, networks: null })
  // Amounts are bigint, which JSON has no word for.
  const told = [...(await listKeys(pools.rest, workspaceId)), await findKey(pools.rest, keyId)]
  answers.push(JSON.stringify(told, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))
  const refusals = await Promise.allSettled([
    rotateKey(parts, ACTOR, ids.next()),
    createKey(parts, ACTOR, { workspaceId: ids.next(), mode: 'live', name: 'nobody' }),
    createKey(parts, ACTOR, { workspaceId, mode: 'live', name: '' }),
  ])
  answers.push(...refusals.map((refusal) => (refusal.status === 'rejected' ? String(refusal.reason?.stack) : 'done')))
  const wrong = makeKey(keyId, 'live', 1).reveal()
  return [replaced, rotated, spare.secret.reveal(), doomed.secret.reveal(), wrong, ...(await useGrants(workspaceId))]
}

/** The same of access tokens: one that works, ones that were revoked by themselves and with their grant, one that is wrong. */
async function useGrants(workspaceId: Id): Promise<readonly string[]> {
  const parts = { pool: pools.rest, ids }
  const { personId } = await makeMember(pools.rest, workspaceId)
  const granted = await makeGranted(pools.rest, { workspaceId, personId })
  const other = await issueToken(pools.rest, granted)
  await setGrantBudget(parts, ACTOR, granted.id, { period: 'day', amount: nanos(5_000n) })
  await revokeAccessToken(pools.rest, ACTOR, other.hash)
  const doomed = await makeGranted(pools.rest, { workspaceId, personId })
  await revokeGrant(parts, ACTOR, doomed.id)
  const found = await findAccessToken(pools.rest, hashOf(new Secret(granted.token)))
  const told = [...(await listGrants(pools.rest, { workspaceId })), found]
  answers.push(JSON.stringify(told, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))
  const refusals = await Promise.allSettled([
    issueToken(pools.rest, doomed),
    issueToken(pools.rest, granted, { audience: 'https://elsewhere.example.com' }),
  ])
  answers.push(...refusals.map((refusal) => (refusal.status === 'rejected' ? String(refusal.reason?.stack) : 'done')))
  const wrong = makeAccessToken(granted.id, granted.shard).reveal()
  return [granted.token, other.token, doomed.token, wrong]
}

type Sent = {
  readonly path?: string
  readonly method?: 'GET' | 'POST'
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** A key where it belongs, and in every place where somebody might put it by mistake. */
function waysOf(key: string): readonly Sent[] {
  const right = { authorization: `Bearer ${key}` }
  const json = { ...right, 'content-type': 'application/json' }
  return [
    { headers: right },
    { headers: { 'x-api-key': key } },
    { path: '/v1beta/models/one:generateContent', headers: { 'x-goog-api-key': key } },
    { path: '/v1/messages', headers: { 'x-api-key': key }, method: 'POST' },
    { path: '/apis/v1/probe?hold=5', headers: right },
    { headers: { authorization: key } },
    { headers: { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` } },
    { headers: { authorization: `Bearer ${key} ${key}` } },
    { headers: { authorization: `Token token="${key}"` } },
    {
      headers: {
        authorization: 'Bearer x',
        cookie: `key=${key}`,
        'user-agent': key,
        'x-request-id': key,
        referer: key,
      },
    },
    { headers: { ...right, 'idempotency-key': key, 'x-forwarded-for': key, origin: `https://${key}` } },
    { path: `/apis/v1/probe?key=${key}&api_key=${key}` },
    { path: `/apis/v1/probe?key=${key}`, headers: right },
    { path: `/apis/v1/${key}`, headers: right },
    { path: `/v1/%zz${key}`, headers: right },
    { path: '/v1/probe', method: 'POST', headers: json, body: JSON.stringify({ key }) },
    { path: '/v1/probe', method: 'POST', headers: json, body: `{"key":"${key}"` },
    { path: '/v1/probe', method: 'POST', headers: { ...json, 'content-type': `text/${key}` }, body: key },
    // The probe fails on what is no number, with an error that quotes it.
    { headers: { ...right, 'x-probe-hold': key } },
    { headers: { ...right, 'x-probe-hold': `Bearer ${key}` } },
    { path: `/apis/v1/probe?hold=Bearer%20${key}`, headers: right },
  ]
}

async function send(
  base: string,
  { path = '/apis/v1/probe', method = 'GET', headers = {}, body }: Sent,
): Promise<void> {
  const response = await request(base + path, {
    method,
    headers: { 'x-forwarded-for': anotherAddress(), ...headers },
    ...(body !== undefined && { body }),
  })
  statuses.add(response.statusCode)
  answers.push(JSON.stringify(response.headers) + (await response.body.text()))
}

async function sendAll(): Promise<void> {
  const all = gateways.flatMap(({ url }) => keys.flatMap(waysOf).map((way) => send(url, way)))
  await Promise.all(all)
}

const said = (): Place[] => [textPlace('a log line', lines.join('\n')), textPlace('an answer', answers.join('\n'))]

describe('AUTH-2 a key, and an access token,', () => {
  it('is in no log line, no answer and no metric, in whatever way it was used', async () => {
    keys.push(...(await useFunctions()))
    await sendAll()
    await postgres.stop()
    await sendAll()
    await postgres.start()
    for (const { adminUrl } of gateways) await send(adminUrl, { path: '/metrics' })

    for (const status of [200, 400, 401, 403, 404, 405, 500, 503]) assert.ok(statuses.has(status), `no ${status}`)
    const failures = lines.filter((line) => line.includes('"msg":"request failed"'))
    assert.ok(
      failures.some((line) => line.includes('internal_error') && line.includes('[redacted]')),
      'a 500 was logged',
    )
    assert.ok(
      failures.some((line) => line.includes('billing_dependency_timeout')),
      'a 503 was logged',
    )
    assert.deepEqual(search(needlesOf(keys), said()), [])
  })

  it('trap: raw keys in the audit log: it says who did what to which key, and nothing of its secret', async () => {
    const { rows } = await pools.rest.query<{ action: string; line: string }>(
      'select action, audit::text as line from audit',
    )
    assert.deepEqual(
      new Set(rows.map(({ action }) => action)),
      new Set([
        'workspace.created',
        'key.created',
        'key.rotated',
        'key.budget_set',
        'key.changed',
        'key.expiry_set',
        'key.revoked',
        'grant.made',
        'grant.token_issued',
        'grant.budget_set',
        'grant.token_revoked',
        'grant.revoked',
      ]),
    )
    assert.deepEqual(search(needlesOf(keys), [textPlace('audit', rows.map(({ line }) => line).join('\n'))]), [])
  })

  it('trap: keys in plain text at rest: they are in no row of any table', async () => {
    const places = await rowsOf(pools.rest)
    const hashes = places.find(({ where }) => where === 'table public.api_keys')?.content.toString() ?? ''
    assert.equal(hashes.match(/\\\\x[0-9a-f]{64}/g)?.length, 4, hashes)
    const tokens = places.find(({ where }) => where === 'table public.access_tokens')?.content.toString() ?? ''
    assert.equal(tokens.match(/\\\\x[0-9a-f]{64}/g)?.length, 1, tokens)
    assert.deepEqual(search(needlesOf(keys), places), [])
  })

  it('is in no file of PostgreSQL either, nor in any statement that it was sent', async () => {
    await postgres.stop()
    const files = filesOf(postgres.folder)
    await postgres.start()
    const statements = files.filter(({ where }) => where.startsWith('data/log/'))
    assert.ok(
      statements.some(({ content }) => content.includes('from api_keys where id <= $1')),
      'statements were logged',
    )
    assert.ok(statements.some(({ content }) => content.includes('from access_tokens')))
    assert.ok(files.some(({ where }) => where.startsWith('data/pg_wal/')))
    assert.deepEqual(search(needlesOf(keys), files), [])
  })
})

describe('the search for keys', () => {
  let made = 0
  const planted = () => {
    made += 1
    return (made % 2 === 0 ? makeKey(ids.next(), 'live', 1) : makeAccessToken(ids.next(), 1)).reveal()
  }

  it('finds one that was planted, in a row, in a file and in a log line, in any form', async () => {
    const forms: Readonly<Record<string, (key: string) => string | Buffer>> = {
      'as it is': (key) => key,
      'its secret part': (key) => key.slice(-49, -6),
      'after other words': (key) => `{"header":"Bearer ${key}"}`,
      'in Base64': (key) => Buffer.from(`x${key}:`).toString('base64'),
      'in hexadecimal': (key) => Buffer.from(key).toString('hex'),
      'percent-encoded': (key) => key.replace(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`),
      'as bytes': (key) => Buffer.from(key),
    }
    await pools.rest.query('create table planted (text text, bytes bytea)')
    const found = new Map<string, string>()
    for (const [form, make] of Object.entries(forms)) {
      const [key, value] = [planted(), make(planted())]
      const content = typeof value === 'string' ? value : value.toString()
      assert.deepEqual(search(needlesOf([key]), [textPlace('a log line', content)]), [], form)
    }
    for (const [form, make] of Object.entries(forms)) {
      const key = planted()
      const value = make(key)
      found.set(form, key)
      const isText = typeof value === 'string'
      await pools.rest.query('insert into planted values ($1, $2)', [isText ? value : null, isText ? null : value])
      assert.ok(search(needlesOf([key]), [textPlace('a log line', `{"msg":"${value}"}`)]).length > 0, form)
    }
    const rows = await rowsOf(pools.rest)
    await postgres.stop()
    const files = filesOf(postgres.folder)
    await postgres.start()
    for (const [form, key] of found) {
      assert.match(search(needlesOf([key]), rows).join('\n'), /^table public\.planted: /m, form)
      const where = search(needlesOf([key]), files).join('\n')
      for (const part of [/^data\/base\//m, /^data\/pg_wal\//m, /^data\/log\//m]) assert.match(where, part, form)
    }
  })

  it('finds each of many in the write-ahead log, whose records cross its pages', async () => {
    const secrets = Array.from({ length: 400 }, () => planted())
    for (const key of secrets) await pools.rest.query('insert into planted values ($1)', [key])
    await postgres.stop()
    const log = filesOf(postgres.folder).filter(({ where }) => where.startsWith('data/pg_wal/'))
    await postgres.start()
    assert.deepEqual(
      secrets.filter((key) => !log.some(({ content }) => content.includes(key))),
      [],
    )
  })
})
