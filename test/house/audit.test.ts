import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { createProgram } from '../../server/src/cli/program.ts'
import { type AuditEntry, listAudit, record } from '../../server/src/storage/audit.ts'
import { inTransaction } from '../../server/src/storage/transaction.ts'
import { ids, makeCustomer } from '../identity/customers.ts'
import { needlesOf, needlesOfTexts, search, textPlace } from '../identity/secrets-nowhere-search.ts'
import { callOf, openSession } from '../ledger/session.ts'
import { commandsOf } from './audit-commands.ts'
import { startAuditInstallation } from './audit-installation.ts'
import { startShell } from './command-shell.ts'

const { pool, databaseUrl, folder, said, env, envOf, scenarios, masterKeys } = await startAuditInstallation()
const { said: saidAfterRotation } = startShell(envOf('secrets rotate'))
/** Whatever is written over this connection is refused by PostgreSQL. */
const readOnly = startShell({
  ...env,
  FAREBOX_DATABASE_URL: `${databaseUrl}?options=${encodeURIComponent('-c default_transaction_read_only=on')}`,
})

const commands = commandsOf(await createProgram({ serve: () => Promise.resolve() }))
const named = (effect: string) => [...commands].filter(([, own]) => own === effect).map(([name]) => name)
const outputs: string[] = []
const ORIGIN = { via: 'command line', host: hostname() }

async function rowsOfAudit(): Promise<readonly AuditEntry[]> {
  return listAudit(pool, {}, { most: 10_000 })
}

describe('a command', () => {
  it('says whether it reads or writes, and who writes is tried below', () => {
    assert.deepEqual(named('undeclared'), [])
    assert.deepEqual(named('apart'), ['serve', 'migrate'])
    assert.deepEqual(named('writes').toSorted(), Object.keys(scenarios).toSorted())
  })

  it('that reads writes nothing at all', async () => {
    const { workspaceId, accountId, keyId } = await makeCustomer(pool, { paid: 5n })
    const session = await openSession(databaseUrl)
    const running = callOf({ accountId, credentialId: keyId }, { hold: 1n })
    await session.begin(running)
    await session.close()
    const personId = ids.next()
    await pool.query("insert into people (id, email, name) values ($1, 'reader@example.com', 'A Reader')", [personId])
    await pool.query(
      `insert into models (id, display_name, owned_by, context_window, output_cap, output_most, part_tokens, tokenizer, enabled)
       values ('maker/read', 'Read', 'maker', 1000, 10, 100, '{}', 'bytes_3', true)`,
    )
    const quotaId = ids.next()
    await pool.query(
      `insert into quota_requests (id, workspace_id, requests_per_minute, tokens_per_minute, targets, use_case)
       values ($1, $2, 100, 1000, '{rerank}', 'Search.')`,
      [quotaId, workspaceId],
    )
    const community = path.join(folder, 'community.json')
    writeFileSync(community, '{"a": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}}')
    const contract = path.join(folder, 'contract.json')
    writeFileSync(contract, '{}')
    const lines: Readonly<Record<string, readonly string[]>> = {
      'contract diff': [contract, contract],
      'models history': ['maker/read'],
      'models convert': [community],
      'accounts show': [workspaceId],
      'budgets list': [workspaceId],
      'grants list': [workspaceId],
      'keys list': [workspaceId],
      'keys refusals': [keyId],
      'keys show': [keyId],
      'ledger explain': [accountId],
      'people show': [personId],
      'requests show': [running.id],
      'members list': [workspaceId],
      'quota show': [quotaId],
    }
    const before = await rowsOfAudit()
    assert.ok(named('reads').length >= 10)
    // It asks listeners, and none runs here.
    const asking = named('reads').filter((name) => name !== 'health')
    for (const name of asking) await readOnly.said(...name.split(' '), ...(lines[name] ?? []))
    assert.deepEqual(await rowsOfAudit(), before)
    const refused = await readOnly.farebox('keys', 'create', workspaceId)
    assert.match(refused.output, /read-only transaction/, 'or else the above shows nothing')
  })

  for (const [name, prepare] of Object.entries(scenarios))
    it(`that writes leaves one row that tells the change: ${name}`, async () => {
      const { line, deed } = await prepare()
      const before = await rowsOfAudit()
      outputs.push(await (name === 'secrets rotate' ? saidAfterRotation : said)(...line))
      const [row, ...rest] = await rowsOfAudit()
      assert.deepEqual(rest, before, 'exactly one, and the others are as they were')
      const { id: _, at, actor, origin, ...told } = row ?? assert.fail('there is no row')
      assert.deepEqual({ actor, origin }, { actor: `operator ${userInfo().username}`, origin: ORIGIN })
      assert.ok(Math.abs(at.getTime() - Date.now()) < 600_000)
      assert.deepEqual(told, await deed())
    })

  it('that changes nothing leaves nothing', async () => {
    const { workspaceId } = await makeCustomer(pool)
    const id = ids.next()
    await said('credit', workspaceId, '5', '--id', id)
    const before = await rowsOfAudit()
    await said('credit', workspaceId, '5', '--id', id)
    await saidAfterRotation('secrets', 'rotate')
    assert.deepEqual(await rowsOfAudit(), before)
  })
})

describe('the audit log', () => {
  it('can be added to, and not changed, by whoever', async () => {
    await makeCustomer(pool)
    const [{ n } = {}] = (await pool.query('select count(*)::integer as n from audit')).rows
    assert.ok(n >= 2)
    for (const statement of [
      "update audit set actor = 'operator nobody'",
      'update audit set after = null',
      'delete from audit',
      'truncate audit',
      'truncate workspaces cascade',
    ])
      await assert.rejects(pool.query(statement), /audit are immutable/, statement)
    const [{ n: left } = {}] = (await pool.query('select count(*)::integer as n from audit')).rows
    assert.equal(left, n)
  })

  it('takes what the last release writes, and tells it as a change', async () => {
    const { workspaceId, keyId } = await makeCustomer(pool)
    const id = ids.next()
    await pool.query(
      'insert into audit (id, actor, action, workspace_id, subject, detail) values ($1, $2, $3, $4, $5, $6)',
      [id, 'operator root', 'key.rotated', workspaceId, keyId, JSON.stringify({ overlapSeconds: 5 })],
    )
    const [row] = await listAudit(pool, { subject: keyId }, { most: 1 })
    assert.deepEqual([row?.id, row?.before, row?.after, row?.origin], [id, null, { overlapSeconds: 5 }, {}])
  })

  it('takes nobody who is of no kind', async () => {
    await assert.rejects(
      pool.query("insert into audit (actor, action, subject) values ('somebody', 'key.revoked', 'x')"),
      /actor_is_kind_and_name/,
    )
  })

  it('takes whatever people write, and nothing fails for it', async () => {
    const subject = ids.next()
    // What follows the control character reads in JSON, where that is an escape, as the beginning of a key.
    const after = {
      name: 'half \ud83d, zero \0 and whole 🦊',
      list: ['\udc00'],
      key: '\u001fb_live_abc',
      '\0': 'fb_live_abc',
    }
    await inTransaction(pool, (query) =>
      record(query, { actor: 'member x', origin: {} }, { action: 'key.created', subject, before: null, after }),
    )
    const [row] = await listAudit(pool, { subject }, { most: 1 })
    assert.deepEqual(row?.after, {
      ...{ name: 'half \ufffd, zero \ufffd and whole 🦊', list: ['\ufffd'] },
      ...{ key: '\u001fb_live_abc', '\ufffd': '[redacted]' },
    })
  })

  it('has no secret in any form: no key, no credential, no master key, no hash and nothing sealed', async () => {
    const credential = `upstream-${ids.next()}-secret`
    const file = path.join(folder, 'planted')
    writeFileSync(file, credential)
    await saidAfterRotation('upstreams', 'add', 'rerank', 'https://reranker.example.com', '--credential-file', file)
    const { workspaceId, keyId, secret } = await makeCustomer(pool)
    // Somebody names a key by its secret.
    outputs.push(await said('keys', 'create', workspaceId, '--name', secret))
    outputs.push(await said('keys', 'rotate', keyId))
    const keys = [secret, ...outputs.flatMap((output) => output.match(/fb_(?:live|test)_\w+/g) ?? [])]
    assert.ok(keys.length >= 3)

    const { rows } = await pool.query<{ line: string }>('select audit::text as line from audit')
    const log = [textPlace('audit', rows.map(({ line }) => line).join('\n'))]
    assert.deepEqual(search(needlesOf(keys), log), [])
    const others = [credential, ...masterKeys.map((key) => key.reveal())]
    assert.deepEqual(search(needlesOfTexts(others), log), [])
    const { rows: kept } = await pool.query<{ hex: string }>(
      `select encode(hash, 'hex') as hex from api_keys union select encode(previous_hash, 'hex') from api_keys
       where previous_hash is not null union select encode(credential, 'hex') from upstreams where credential is not null
       union select encode(prompt, 'hex') from tasks where prompt is not null`,
    )
    assert.ok(kept.length >= 4)
    const bytes = kept.map(({ hex }) => Buffer.from(hex, 'hex'))
    const needles = bytes.flatMap((one) => [
      one,
      ...['hex', 'base64', 'base64url'].map((way) => Buffer.from(one.toString(way as BufferEncoding))),
    ])
    assert.deepEqual(search(needles, log), [])
    assert.ok(log[0]?.content.includes('[redacted]'), 'the name was taken out')
  })
})

describe('farebox audit', () => {
  it('lists the newest first, a page at a time, for people and for programs', async () => {
    const { workspaceId, keyId } = await makeCustomer(pool)
    await said('keys', 'rotate', keyId)
    await said('keys', 'revoke', keyId)
    const lines = (await said('audit', '--workspace', workspaceId)).trimEnd().split('\n')
    assert.equal(lines.length, 4)
    assert.match(
      lines[0] ?? '',
      new RegExp(
        `^\\S+Z  operator ${userInfo().username}  key\\.revoked  ${keyId}  of ${workspaceId}  {"isRevoked":false} → {"isRevoked":true}  via command line  host \\S+$`,
      ),
    )
    const pages: Record<string, unknown>[] = []
    for (let after: readonly string[] = []; ; ) {
      const text = await said('audit', '--workspace', workspaceId, '--limit', '3', '--json', ...after)
      const page = text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
      pages.push(...page)
      if (page.length < 3) break
      after = ['--after', page.at(-1).id]
    }
    assert.deepEqual(
      pages.map(({ action }) => action),
      ['key.revoked', 'key.rotated', 'key.created', 'workspace.created'],
    )
    assert.deepEqual(Object.keys(pages[0] ?? {}).toSorted(), [
      ...['action', 'actor', 'after', 'at', 'before', 'id', 'origin', 'subject', 'workspace_id'],
    ])
    assert.match(await said('audit', '--limit', '2'), /\nThere may be more\. For the next page, add --after \S+\n$/)
  })

  it('filters by workspace, action, actor, subject and time', async () => {
    const { workspaceId, keyId } = await makeCustomer(pool)
    await said('keys', 'revoke', keyId)
    const count = async (...options: readonly string[]) =>
      (await said('audit', '--json', '--workspace', workspaceId, ...options)).split('\n').length - 1
    assert.equal(await count(), 3)
    assert.equal(await count('--action', 'key'), 2)
    assert.equal(await count('--action', 'key.revoked'), 1)
    assert.equal(await count('--action', 'key.rev'), 0)
    assert.equal(await count('--actor', 'operator'), 3)
    assert.equal(await count('--actor', `operator ${userInfo().username}`), 1)
    assert.equal(await count('--actor', 'worker'), 0)
    assert.equal(await count('--subject', keyId), 2)
    assert.equal(await count('--since', '2020-01-01'), 3)
    assert.equal(await count('--until', '2020-01-01'), 0)
    assert.equal(await said('audit', '--subject', 'nobody'), 'The audit log has no matching rows.\n')
  })

  for (const [what, args, says] of [
    ['what is no id', ['--workspace', 'x'], '"x" is not an id'],
    ['what is no time', ['--since', 'yesterday'], '"yesterday" is not a time: use the form 2027-01-31T00:00:00Z'],
    ['too much', ['--limit', '1001'], '--limit must be a whole number from 1 to 1000'],
  ] as const)
    it(`says what is wrong when it is given ${what}`, async () => {
      assert.deepEqual(await readOnly.farebox('audit', ...args), { code: 1, output: `farebox: ${says}\n`, stdout: '' })
    })
})
