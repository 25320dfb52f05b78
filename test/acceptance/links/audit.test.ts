import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { startGateways } from '../../../harness/gateways.ts'
import { ROOT } from '../../../harness/root.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { CALLER_ROUTES } from '../../../server/src/callers/routes.ts'
import { revokeKey } from '../../../server/src/identity/keys.ts'
import { type AuditEntry, listAudit } from '../../../server/src/storage/audit.ts'
import { ACTOR, ask, codeOf, ids, makeCustomer, startInstallation } from '../installation.ts'
import { CALLBACK, follow, LINKS, linkAccount, startLink, undoTokenIn } from './linking.ts'
import { platformOf } from './sandbox-platform.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const platform = platformOf(sandbox.url)

const deedsOf = (workspaceId: string): Promise<readonly AuditEntry[]> =>
  listAudit(pool, { workspaceId, action: 'link' }, { most: 100 })

/** What a row says, but for when and under which id. */
const told = ({ actor, action, subject, before, after }: AuditEntry) => ({ actor, action, subject, before, after })

async function linkOf(secret: string): Promise<string> {
  const [link] = (await ask(url, secret, LINKS)).json.data as { id: string }[]
  return link?.id ?? assert.fail('nothing is linked')
}

describe('the audit log of links', () => {
  it('has who linked what, once, and what it replaced; a link that was only begun is none', async () => {
    const { workspaceId, keyId, secret } = await makeCustomer(pool)
    await startLink(url, secret)
    assert.deepEqual(await deedsOf(workspaceId), [])
    await linkAccount(url, secret, 'alice')
    const first = await linkOf(secret)
    await linkAccount(url, secret, 'bob', { scopes: ['users.read', 'tweet.read'] })
    const [second, made, ...others] = await deedsOf(workspaceId)
    assert.deepEqual(others, [])
    assert.ok(made !== undefined && second !== undefined)
    assert.deepEqual(
      [made.actor, made.action, made.subject, made.before],
      [`member ${keyId}`, 'link.made', first, null],
    )
    assert.deepEqual(second.before, made.after)
    const { upstreamId } = made.after ?? {}
    assert.deepEqual(second.after, { id: await linkOf(secret), upstreamId, scopes: ['users.read', 'tweet.read'] })
    assert.deepEqual(made.origin, { via: 'http', address: '127.0.0.1', userAgent: 'node' })
    assert.doesNotMatch(JSON.stringify([made, second]), /alice|bob/, 'nobody could delete who a user is')
  })

  it('has who removed one, once, from where, and no key that stands where it should not', async () => {
    const { workspaceId, keyId, secret } = await makeCustomer(pool)
    await linkAccount(url, secret)
    const id = await linkOf(secret)
    const remove = () =>
      ask(url, secret, `${LINKS}/${id}`, { method: 'DELETE', headers: { 'user-agent': `x ${secret}` } })
    assert.deepEqual([(await remove()).status, (await remove()).status], [204, 404])
    const [removed, , ...others] = await deedsOf(workspaceId)
    assert.deepEqual(others, [])
    assert.deepEqual(told(removed ?? assert.fail()), {
      ...{ actor: `member ${keyId}`, action: 'link.removed', subject: id },
      ...{ before: { ended: null }, after: { ended: 'ending' } },
    })
    assert.equal(removed?.origin.userAgent, 'x [redacted]')
  })

  it('has that a user undid one, once', async () => {
    const { workspaceId, keyId, secret } = await makeCustomer(pool)
    const page = await linkAccount(url, secret)
    const id = await linkOf(secret)
    const body = new URLSearchParams({ token: undoTokenIn(page) })
    const undo = () => fetch(`${url}${CALLBACK}/undo`, { method: 'POST', body })
    assert.deepEqual([(await undo()).status, (await undo()).status], [200, 400])
    const [undone, , ...others] = await deedsOf(workspaceId)
    assert.deepEqual(others, [])
    assert.deepEqual([undone?.actor, undone?.action, undone?.subject], [`member ${keyId}`, 'link.undone', id])
  })

  it('has that one ended by itself, once however many calls find it so', async () => {
    const { workspaceId, secret } = await makeCustomer(pool)
    await linkAccount(url, secret, 'gone_user')
    await platform.turn({ revoke_user: 'gone_user' })
    // The first is not believed.
    assert.equal(codeOf(await follow(url, secret)), 'upstream_transport')
    const calls = await Promise.all([follow(url, secret), follow(url, secret), follow(url, secret)])
    assert.deepEqual(calls.map(codeOf), ['link_required', 'link_required', 'link_required'])
    const [ended, , ...others] = await deedsOf(workspaceId)
    assert.deepEqual(others, [])
    assert.deepEqual(told(ended ?? assert.fail()), {
      ...{ actor: 'service farebox', action: 'link.ended', subject: await linkOf(secret) },
      ...{ before: { ended: null }, after: { ended: 'revoked' } },
    })
  })

  it('has that a worker removed what belonged to a key that is gone', async () => {
    const { workspaceId, keyId, secret } = await makeCustomer(pool)
    await linkAccount(url, secret)
    await revokeKey({ pool, ids }, ACTOR, keyId)
    // A process sweeps when it starts.
    const [another] = await startGateways(1, {
      databaseUrl: database.url,
      env: { FAREBOX_SECRETS_MASTER_KEY: installation.masterKey.reveal(), FAREBOX_LOG_LEVEL: 'warn' },
    })
    const isGone = async () =>
      (await pool.query('select from link_sessions where credential_id = $1', [keyId])).rowCount === 0
    await until(isGone, PATIENCE_MS, 'that it is swept')
    await another?.stop()
    const [removed, , ...others] = await deedsOf(workspaceId)
    assert.deepEqual(others, [])
    assert.match(removed?.actor ?? '', /^worker [0-9a-f-]{36}$/)
    assert.deepEqual([removed?.action, removed?.origin], ['link.removed', { via: 'worker' }])
  })
})

/** Every place that takes a method which changes something, beside the records of callers' routes. Of calls the ledger is the record. */
const WRITING_ROUTES = [
  'families.ts route',
  'link-pages.ts post /decide',
  'link-pages.ts post /undo',
  'operations.ts post /models/*',
  'operations.ts route',
]

describe('the routes that change something', () => {
  it('are links, whose rows are shown above, calls, and tasks, whose record is the ledger too', () => {
    const records = CALLER_ROUTES.filter(({ method }) => method !== 'GET').map(({ operationId }) => operationId)
    assert.deepEqual(records, ['cancel_task', 'start_link', 'delete_link'])
    const folder = path.join(ROOT, 'server/src/http/routes')
    const found = readdirSync(folder)
      .filter((file) => !file.endsWith('.test.ts'))
      .flatMap((file) =>
        [
          ...readFileSync(path.join(folder, file), 'utf8').matchAll(
            /\.(post|put|patch|delete|route|all)\b(?:<.*>)?\((.*)/g,
          ),
        ].map(([, method, rest = '']) => `${file} ${method} ${rest}`),
      )
    const unknown = found.filter(
      (one) => !WRITING_ROUTES.some((known) => known.split(' ').every((word) => one.includes(word))),
    )
    assert.deepEqual(unknown, [], 'a new one leaves a row in the audit log, or is a call')
    assert.equal(found.length, WRITING_ROUTES.length)
  })
})
