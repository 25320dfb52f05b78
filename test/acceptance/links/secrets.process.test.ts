import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Gateway, startGateways } from '../../../harness/gateways.ts'
import { type Postgres, startPostgres } from '../../../harness/postgres.ts'
import { findPostgres } from '../../../harness/postgres-binaries.ts'
import { count, recordProof } from '../../../harness/proof.ts'
import { type SandboxProcess, startSandbox } from '../../../harness/sandbox.ts'
import { bindSandbox, makeMasterKey } from '../../../harness/seed.ts'
import { createSeal, SealError } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { VERIFIERS } from '../../../server/src/links/attempts.ts'
import { openTokens, type Wrapped } from '../../../server/src/links/tokens.ts'
import { migrate } from '../../../server/src/storage/migrate.ts'
import type { Pools } from '../../../server/src/storage/pools.ts'
import { silentLog } from '../../../server/src/telemetry/log.ts'
import { filesOf, type Place, search, textPlace } from '../../identity/secrets-nowhere-search.ts'
import { connect } from '../../ledger/world.ts'
import { ask, type Customer, makeCustomer, type Told } from '../installation.ts'
import { needlesFor } from './canaries.ts'
import { CALLBACK, confirm, decide, FOLLOW, LINKS, open, type PageTold, startLink, undoTokenIn } from './linking.ts'
import { expire, platformOf } from './sandbox-platform.ts'

/** PostgreSQL writes down every statement with its parameters: whatever we tell it is there to be found. */
const TALKATIVE = { logging_collector: 'on', log_directory: 'log', log_statement: 'all', log_parameter_max_length: -1 }
const CLIENT_SECRET = 'sandbox-client-secret'
/** So many secrets of ours are looked for in every file. */
const SEARCHED = count({ full: 1_000, reduced: 16 })
const PROOF = 'links-secrets'

const masterKey = makeMasterKey()
const seal = createSeal({ current: masterKey })
const secrets = new Set([CLIENT_SECRET, masterKey.reveal()])
const lines: string[] = []
const answers: string[] = []
const statuses = new Set<number>()
let postgres: Postgres
let pools: Pools
let sandbox: SandboxProcess
let gateways: readonly Gateway[] = []
let url = ''

before(async () => {
  postgres = await startPostgres({ settings: TALKATIVE })
  await migrate({ url: new Secret(postgres.url()), log: silentLog })
  pools = connect(postgres.url()).pools
  sandbox = await startSandbox()
  await bindSandbox({ pool: pools.rest, masterKey, sandboxUrl: sandbox.url })
  gateways = await startGateways(2, {
    databaseUrl: postgres.url(),
    env: {
      FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
      FAREBOX_LINKS_OFFLINE_ACCESS: 'true',
      FAREBOX_LOG_LEVEL: 'info',
    },
    onLine: (line) => lines.push(line),
  })
  url = gateways[0]?.url ?? ''
})
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await pools.close()
  await Promise.all([sandbox.stop(), postgres.remove()])
})

/** Keeps an answer of ours for the search, without what it is there to tell. */
function keep<T extends Told | PageTold>(told: T, ...meant: readonly string[]): T {
  let text = JSON.stringify([...told.headers]) + told.text
  for (const one of meant) text = text.replaceAll(one, '')
  answers.push(text)
  statuses.add(told.status)
  return told
}

/** Starts a link and lets its user allow it; the secrets that this has made are known from now on. */
async function allowed({ secret, keyId }: Customer, user: string): Promise<string> {
  const started = await startLink(url, secret)
  const state = String(started.json.state)
  keep(started, state)
  const { rows } = await pools.rest.query('select verifier from link_attempts where credential_id = $1', [keyId])
  const verifier = seal.open(rows[0].verifier, VERIFIERS.boundTo(keyId, '')).reveal()
  const location = await decide(String(started.json.auth_url), { user })
  for (const one of [state, verifier, new URL(location).searchParams.get('code') ?? '']) secrets.add(one)
  return location
}

async function wrappedOf(keyId: string): Promise<Wrapped> {
  const { rows } = await pools.rest.query('select wrapped_key, tokens from link_sessions where credential_id = $1', [
    keyId,
  ])
  return { wrappedKey: rows[0].wrapped_key, tokens: rows[0].tokens }
}

/** Learns the tokens that a key has now. */
async function learnTokens(keyId: string): Promise<void> {
  const { access, refresh } = openTokens(seal, keyId, await wrappedOf(keyId))
  secrets.add(access.reveal())
  if (refresh !== null) secrets.add(refresh.reveal())
}

async function linked(user: string): Promise<Customer & { readonly undoToken: string }> {
  const customer = await makeCustomer(pools.rest)
  const asked = await open(await allowed(customer, user))
  keep(asked)
  const page = await confirm(url, asked)
  assert.equal(page.status, 200, page.text)
  const undoToken = undoTokenIn(page)
  secrets.add(undoToken)
  keep(page, undoToken)
  await learnTokens(customer.keyId)
  return { ...customer, undoToken }
}

const write = async (secret: string, target = '5') =>
  keep(await ask(url, secret, FOLLOW, { body: { target_user_id: target } }))

async function undo(token: string): Promise<void> {
  const answer = await fetch(`${url}${CALLBACK}/undo`, { method: 'POST', body: new URLSearchParams({ token }) })
  const told = { status: answer.status, headers: answer.headers, text: await answer.text() }
  // Where the platform could not be told, the page lets who has the token use it once more.
  keep(told, ...(told.status === 502 ? [token] : []))
}

async function faultAt(part: string, ...directives: readonly string[]): Promise<void> {
  const body = JSON.stringify({ upstream: 'platform', directives, path: part })
  assert.equal((await fetch(`${sandbox.url}/control`, { method: 'POST', body })).status, 200)
}

/** What a platform may answer that nobody expects; with what was asked done, where half of an answer has its tokens. */
const SPOILED = [
  ...['garbage', 'html', 'empty', 'truncate', 'close-early', 'reset=in-body', 'wrong-length=-7', 'gzip-bomb'],
  ...[
    'content-type=text/plain',
    'redirect=http://127.0.0.1:9/',
    'dup-headers',
    'status=500',
    'status=403',
    'status=401',
  ],
] as const

async function everythingGoesWell(): Promise<void> {
  const customer = await linked('well')
  await write(customer.secret)
  await expire(pools.rest, sandbox.url, [customer.keyId])
  assert.equal((await write(customer.secret)).status, 200)
  await learnTokens(customer.keyId)
  keep(await ask(url, customer.secret, LINKS))
  keep(await ask(url, customer.secret, '/v1/usage?start_time=1'))
  await undo(customer.undoToken)
}

async function everythingGoesWrong(): Promise<void> {
  for (const [number, directive] of SPOILED.entries()) {
    const customer = await makeCustomer(pools.rest)
    const first = await allowed(customer, `wrong_${number}`)
    await faultAt('/oauth2/token', directive, 'done-anyway')
    keep(await open(first))
    const second = await allowed(customer, `wrong_${number}`)
    await faultAt('/users/me', directive)
    keep(await open(second))
    keep(await open(second))
    await fetch(`${sandbox.url}/control`, { method: 'DELETE' })

    const other = await linked(`refreshed_${number}`)
    await faultAt('/following', directive)
    await write(other.secret)
    await expire(pools.rest, sandbox.url, [other.keyId])
    await faultAt('/oauth2/token', directive, 'done-anyway')
    await write(other.secret)
    await write(other.secret)
    await fetch(`${sandbox.url}/control`, { method: 'DELETE' })
    const leaving = await linked(`leaving_${number}`)
    await faultAt('/oauth2/revoke', directive)
    await undo(leaving.undoToken)
    await fetch(`${sandbox.url}/control`, { method: 'DELETE' })
  }
}

/** Secrets where they do not belong, and while PostgreSQL is away. */
async function misplaced(): Promise<void> {
  const customer = await linked('misplaced')
  const known = [...secrets].filter((one) => one !== CLIENT_SECRET && one !== masterKey.reveal()).slice(-8)
  for (const one of known) {
    for (const query of [`state=${one}&code=${one}`, `state=${one}&error=${one}`, `code=${one}`, `${one}=${one}`])
      keep(await open(`${url}${CALLBACK}?${query}`))
    keep(await ask(url, customer.secret, `${LINKS}/${one}`, { method: 'DELETE' }))
    keep(await ask(url, one, FOLLOW, { body: { target_user_id: one } }))
    await write(customer.secret, one)
    keep(await startLink(url, customer.secret, { scopes: [one] }))
    await undo(one)
  }
  const location = await allowed(customer, 'misplaced')
  const leaving = await linked('misplaced_too')
  await postgres.stop()
  keep(await open(location))
  await write(customer.secret)
  keep(await startLink(url, customer.secret))
  await undo(leaving.undoToken)
  await postgres.start()
}

const said = (): Place[] => [
  ...lines.map((line) => textPlace('a log line', line)),
  ...answers.map((answer) => textPlace('an answer', answer)),
]

describe('LINK-7 what a platform gave us', () => {
  it('is in no log line, no error, no page and no answer, whatever goes wrong', async () => {
    await platformOf(sandbox.url).turn({ follow_limit: 1_000_000 })
    await everythingGoesWell()
    await everythingGoesWrong()
    await misplaced()
    for (const { adminUrl } of gateways) keep(await open(`${adminUrl}/metrics`))

    for (const status of [200, 400, 401, 403, 404, 502, 503]) assert.ok(statuses.has(status), `no ${status}`)
    for (const message of ['an account could not be linked', 'a session could not be refreshed', 'request failed'])
      assert.ok(
        lines.some((line) => line.includes(message)),
        `"${message}" was logged`,
      )
    assert.deepEqual(search(needlesFor(secrets), said()), [])
    recordProof(PROOF, 'said', {
      ...{ secrets: secrets.size, forms: needlesFor(secrets).length, answers: answers.length, log_lines: lines.length },
      ...{ warnings: lines.filter((line) => /"level":"(warn|error)"/.test(line)).length, found: 0 },
    })
  })

  it('reached the platform in no address, and no address of ours was told to anybody', async () => {
    const journal = await sandbox.journal()
    assert.ok(journal.some(({ path: at }) => at === '/platform/2/oauth2/token'))
    const told = journal.map(({ path: at, query, headers }) => {
      // The state belongs into the address by which the user is asked, and nothing else does.
      const state = at === '/platform/i/oauth2/authorize' ? new URLSearchParams(query).get('state') : null
      const text = JSON.stringify({ at, query, headers })
      return textPlace('the journal', state === null ? text : text.replaceAll(state, ''))
    })
    assert.deepEqual(search(needlesFor(secrets), told), [])
    const names = new Set(journal.flatMap(({ header_names: all }) => all))
    assert.ok(!names.has('referer') && !names.has('cookie'), [...names].join())
    recordProof(PROOF, 'addresses', { requests_to_the_platform: journal.length, found: 0 })
  })

  it('is in no dump, in no statement and in no file of PostgreSQL', async () => {
    const program = path.join(findPostgres().folder, 'pg_dump')
    const dump = (...args: string[]) =>
      execFileSync(program, [...args, '--dbname', postgres.url()], { maxBuffer: 256 * 1024 * 1024 })
    const plain = dump()
    assert.ok(plain.includes('COPY public.link_sessions') && plain.includes('COPY public.link_attempts'))
    const custom = dump('--format=custom', '--compress=0')
    await postgres.stop()
    const files = filesOf(postgres.folder)
    await postgres.start()
    assert.ok(files.some(({ where, content }) => where.startsWith('data/log/') && content.includes('link_sessions')))
    const places = [{ where: 'dump', content: plain }, { where: 'custom dump', content: custom }, ...files]
    // There is much to search. The platform's own secrets are found by how they begin.
    const rest = [...secrets].filter((one) => !one.includes('_canary_')).slice(0, SEARCHED)
    assert.deepEqual(search(needlesFor(rest), places), [])
    recordProof(PROOF, 'at rest', {
      dumps: 2,
      dump_bytes: plain.length,
      files: files.length,
      searched_for: rest.length,
      found: 0,
    })
  })

  it('is found by this search where it is planted, in any form', () => {
    const [secret = ''] = [...secrets].filter((one) => one.startsWith('rt_canary_'))
    const bytes = Buffer.from(`{"refresh":"${secret}"}`)
    for (const form of [
      bytes.toString(),
      bytes.toString('hex'),
      bytes.toString('base64'),
      bytes.toString('base64url'),
    ]) {
      assert.notDeepEqual(search(needlesFor([secret]), [textPlace('planted', `x${form}x`)]), [])
      assert.notDeepEqual(search(needlesFor([]), [textPlace('planted', `x${form}x`)]), [], 'by how it begins alone')
    }
  })

  it('opens with the master key alone, and as the credential it belongs to alone', async () => {
    const [mine, other] = [await linked('mine'), await linked('other')]
    const wrapped = await wrappedOf(mine.keyId)
    const stranger = createSeal({ current: makeMasterKey() })
    assert.throws(() => openTokens(stranger, mine.keyId, wrapped), SealError)
    assert.throws(() => openTokens(seal, other.keyId, wrapped), SealError)
    assert.throws(
      () => openTokens(seal, mine.keyId, { ...wrapped, wrappedKey: wrapped.tokens, tokens: wrapped.wrappedKey }),
      SealError,
    )
    for (let at = 0; at < wrapped.tokens.length; at += 1) {
      const changed = Buffer.from(wrapped.tokens)
      changed[at] = (changed[at] ?? 0) ^ 1
      assert.throws(() => openTokens(seal, mine.keyId, { ...wrapped, tokens: changed }), SealError, `byte ${at}`)
    }
    // Whoever can write to the table can't act for somebody else's user by it.
    const moved = [other.keyId, wrapped.wrappedKey, wrapped.tokens]
    await pools.rest.query('update link_sessions set wrapped_key = $2, tokens = $3 where credential_id = $1', moved)
    const { follows } = await platformOf(sandbox.url).summary()
    assert.ok((await write(other.secret)).status >= 500)
    assert.equal((await platformOf(sandbox.url).summary()).follows, follows)
    assert.equal((await write(mine.secret)).status, 200)
    assert.deepEqual(search(needlesFor(secrets), said()), [])
    recordProof(PROOF, 'sealed', { changed_bytes_refused: wrapped.tokens.length, moved_rows_refused: 1 })
  })
})
