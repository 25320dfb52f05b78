import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import type pg from 'pg'
import type { Call } from '../../server/src/calls/call.ts'
import { commandsBelow } from '../../server/src/cli/document.ts'
import type { Seal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import type { Facts } from '../../server/src/storage/audit.ts'
import { askClosure } from '../../server/src/workspaces/closures.ts'
import { ids, makeCustomer, setPaid } from '../identity/customers.ts'
import { makeGranted, makeMember } from '../identity/granted.ts'
import { callOf, openSession, outcomesOf, postOf } from '../ledger/session.ts'

/** What a line of the command line is to leave in the audit log. */
export type Expected = {
  readonly action: string
  readonly workspaceId: string | null
  readonly subject: string
  readonly before: Facts | null
  readonly after: Facts | null
}

export type Prepared = {
  readonly line: readonly string[]
  /** Asked when the line has run. */
  readonly deed: () => Promise<Expected> | Expected
}

/** Every command that does something, by its name, with what it says of itself. */
export function commandsOf(program: Command): ReadonlyMap<string, string> {
  const found = commandsBelow(program)
    // What commander keeps to itself: whether it is more than a name for those below it.
    .filter(({ command }) => Reflect.get(command, '_actionHandler') !== null)
    .map(({ name, effect }) => [name.slice(`${program.name()} `.length), effect ?? 'undeclared'] as const)
  return new Map(found)
}

type Parts = {
  readonly pool: pg.Pool
  readonly databaseUrl: string
  readonly said: (...line: readonly string[]) => Promise<string>
  readonly seal: Seal
  readonly credentialFile: string
  /** A vendor whose profile the probe can be certain of. */
  readonly vendorUrl: string
}

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/
const LIMITS = ['--context-window', '1000', '--output-cap', '10', '--output-most', '100']
const idIn = (output: string) => ID.exec(output)?.[0] ?? assert.fail(output)

/** For each command that writes, how to bring about that it changes something, and what the audit log is to have of it. */
export function createScenarios({ pool, databaseUrl, said, seal, credentialFile, vendorUrl }: Parts) {
  let made = 0
  const another = (what: string) => `${what}_${made++}`

  async function quotaRequest() {
    const { workspaceId } = await makeCustomer(pool)
    const { personId } = await makeMember(pool, workspaceId)
    const id = ids.next()
    await pool.query(
      `insert into quota_requests (id, workspace_id, person_id, requests_per_minute, tokens_per_minute, targets, use_case)
       values ($1, $2, $3, 100, 1000, '{rerank}', 'Search.')`,
      [id, workspaceId, personId],
    )
    return { workspaceId, id }
  }

  /** Of what is switched off and on by its name. */
  const switchScenarios = (group: 'operations' | 'categories', kind: 'operation' | 'category', subject: string) => {
    const line = (word: string, reason: string) => [group, word, subject, '--reason', reason]
    const deed = (action: string, before: Facts | null, reason: string) => () => ({
      ...{ action, workspaceId: null, subject, before, after: { reason } },
    })
    return {
      async [`${group} off`]() {
        return { line: line('off', 'too dear'), deed: deed(`${kind}.switched_off`, null, 'too dear') }
      },
      async [`${group} on`]() {
        await said(...line('off', 'gone for now'))
        return {
          line: line('on', 'cheap again'),
          deed: deed(`${kind}.switched_on`, { off_reason: 'gone for now' }, 'cheap again'),
        }
      },
    }
  }

  async function deadLetter() {
    // Whose it is, is not in the audit log: it may be an address of e-mail.
    const letter = { kind: 'note' }
    const id = ids.next()
    await pool.query(
      `insert into outbox (id, kind, destination, payload, due_at, died_at) values ($1, $2, $3, '{}', null, clock_timestamp())`,
      [id, letter.kind, `${another('receiver')}@example.com`],
    )
    return { id, letter }
  }

  /** Somebody who has signed up. */
  async function person(): Promise<{ id: string; email: string }> {
    const [id, email] = [ids.next(), `${another('person')}@example.com`]
    await pool.query(
      "insert into people (id, email, name, verified_at) values ($1, $2, 'Some One', clock_timestamp())",
      [id, email],
    )
    return { id, email }
  }

  /** A workspace of two owners who have signed up. */
  async function owned() {
    const { workspaceId } = await makeCustomer(pool)
    const [first, second] = [await person(), await person()]
    const owners = []
    for (const { email } of [first, second])
      owners.push(idIn(await said('members', 'add', workspaceId, email, 'owner')))
    const [memberId = '', otherId = ''] = owners
    return { workspaceId, memberId, otherId, personId: first.id }
  }

  async function model(): Promise<string> {
    const name = another('maker/model')
    await said('models', 'set', name, ...LIMITS)
    return name
  }

  const routeOf = (name: string, slot: string) => ['models', 'route', name, '--slot', slot, '--protocol', 'openai']

  async function upstream() {
    const [name, slot] = [await model(), another('vendor')]
    const route = idIn(await said(...routeOf(name, slot), '--upstream-model', 'sandbox/text'))
    const add = ['upstreams', 'add', slot, vendorUrl, '--test', '--credential-file', credentialFile]
    return { model: name, slot, route, id: idIn(await said(...add)) }
  }

  async function begin(call: Call): Promise<void> {
    const session = await openSession(databaseUrl)
    assert.deepEqual(await outcomesOf(session.begin(call)), ['begun'])
    await session.close()
  }

  const settings = {
    displayName: 'a name',
    ownedBy: 'maker',
    contextWindow: 1_000,
    outputCap: 10,
    outputMost: 100,
    partTokens: {},
    tokenizer: 'bytes_3',
    enabled: true,
  }
  const noPrices = { cacheRead: null, cacheWrite: null, images: null, videos: null, classes: null }
  const noProviderPrices = {
    ...{ providerInput: null, providerOutput: null, providerCacheRead: null, providerCacheWrite: null },
    ...{ providerImages: null, providerVideos: null, providerClasses: null },
  }
  const plain = {
    ...{ outputLimit: null, unknown: 'refuse', reasoning: 'within', abort: 'runs_on' },
    ...{ output: 'hidden', tokenBytes: 1, topSpeed: null },
  }
  const vendor = (slot: string) => ({
    ...{
      slot,
      mode: 'test',
      baseUrl: vendorUrl,
      kind: 'native',
      hasCredential: true,
      segments: {},
      priority: 0,
      weight: 1,
    },
    ...{ requestsPerMinute: null, pollsPerSecond: null, enabled: true, clientId: null, authorizeUrl: null },
  })

  const scenarios: Readonly<Record<string, () => Promise<Prepared>>> = {
    async 'accounts create'() {
      const name = another('Example')
      return {
        line: ['accounts', 'create', '--name', name, '--email', 'owner@example.com'],
        async deed() {
          const { rows } = await pool.query('select * from workspaces where name = $1', [name])
          const { id, live_account_id: liveAccountId, test_account_id: testAccountId } = rows[0] ?? assert.fail()
          const after = { name, liveAccountId, testAccountId }
          return { action: 'workspace.created', workspaceId: id, subject: id, before: null, after }
        },
      }
    },
    async 'accounts tier'() {
      const { workspaceId } = await makeCustomer(pool)
      await said('accounts', 'tier', workspaceId, 'growth')
      const limits = { requestsPerMinute: 7, tokensPerMinute: 70, concurrency: 2 }
      return {
        line: ['accounts', 'tier', workspaceId, 'enterprise', '--rpm', '7', '--tpm', '70', '--concurrency', '2'],
        deed: () => ({
          ...{ action: 'workspace.tier_granted', workspaceId, subject: workspaceId },
          before: { tier: 'growth', requestsPerMinute: null, tokensPerMinute: null, concurrency: null },
          after: { tier: 'enterprise', ...limits },
        }),
      }
    },
    async 'accounts plan'() {
      const { workspaceId } = await makeCustomer(pool)
      const plan = another('plan')
      await said('plans', 'set', plan, '0.8x')
      return {
        line: ['accounts', 'plan', workspaceId, plan],
        deed: () => ({
          ...{ action: 'workspace.plan_set', workspaceId, subject: workspaceId },
          ...{ before: { plan: 'standard' }, after: { plan } },
        }),
      }
    },
    async 'accounts suspend'() {
      const { workspaceId } = await makeCustomer(pool)
      return {
        line: ['accounts', 'suspend', workspaceId, '--reason', 'Stolen cards.'],
        deed: () => ({
          ...{ action: 'workspace.suspended', workspaceId, subject: workspaceId },
          ...{ before: { isSuspended: false }, after: { isSuspended: true, reason: 'Stolen cards.' } },
        }),
      }
    },
    async 'accounts resume'() {
      const { workspaceId } = await makeCustomer(pool)
      await said('accounts', 'suspend', workspaceId, '--reason', 'Stolen cards.')
      return {
        line: ['accounts', 'resume', workspaceId, '--reason', 'A mistake.'],
        deed: () => ({
          ...{ action: 'workspace.resumed', workspaceId, subject: workspaceId },
          ...{
            before: { isSuspended: true, reason: 'Stolen cards.' },
            after: { isSuspended: false, reason: 'A mistake.' },
          },
        }),
      }
    },
    async 'accounts cancel-closure'() {
      const { workspaceId } = await makeCustomer(pool)
      const { personId } = await makeMember(pool, workspaceId)
      const parts = { pool, ids, sendMail: async () => {}, siteUrl: '' }
      const by = { actor: `member ${personId}`, origin: {} } as const
      const { closesAt } = await askClosure(parts, by, { workspaceId, personId })
      return {
        line: ['accounts', 'cancel-closure', workspaceId],
        deed: () => ({
          ...{ action: 'workspace.closure_canceled', workspaceId, subject: workspaceId },
          ...{ before: { isClosing: true, closesAt: closesAt.toISOString() }, after: { isClosing: false } },
        }),
      }
    },
    async 'plans set'() {
      const subject = another('plan')
      await said('plans', 'set', subject, '0.8x')
      return {
        line: ['plans', 'set', subject, '1.25x'],
        deed: () => ({
          ...{ action: 'plan.set', workspaceId: null, subject },
          ...{ before: { multiplier: '8/10' }, after: { multiplier: '125/100' } },
        }),
      }
    },
    async 'keys create'() {
      const { workspaceId, keyId } = await makeCustomer(pool)
      const options = ['--name', 'a key', '--scopes', 'rerank', '--expires', '2099-01-31', '--budget', '5/day']
      const terms = ['--rpm', '7', '--addresses', '2001:DB8::/32,10.0.0.1']
      return {
        line: ['keys', 'create', workspaceId, ...options, ...terms],
        async deed() {
          const { rows } = await pool.query('select id from api_keys where workspace_id = $1 and id <> $2', [
            workspaceId,
            keyId,
          ])
          const after = {
            ...{ name: 'a key', mode: 'live', scopes: ['rerank'], expiresAt: '2099-01-31T00:00:00.000Z' },
            budget: { period: 'day', usd: '5.000000000' },
            ...{ requestsPerMinute: 7, tokensPerMinute: null, concurrency: null },
            networks: ['2001:db8::/32', '10.0.0.1/32'],
          }
          return { action: 'key.created', workspaceId, subject: rows[0]?.id, before: null, after }
        },
      }
    },
    async 'keys change'() {
      const { workspaceId, keyId } = await makeCustomer(pool, {
        key: { rates: { tokensPerMinute: 70, concurrency: 2 } },
      })
      const name = await model()
      const options = ['--rpm', '7', '--tpm', 'none', '--scopes', `social,model:${name}`, '--addresses', '10.0.0.0/8']
      return {
        line: ['keys', 'change', keyId, ...options],
        deed: () => ({
          ...{ action: 'key.changed', workspaceId, subject: keyId },
          before: { requestsPerMinute: null, tokensPerMinute: 70, scopes: null, networks: null },
          after: {
            ...{ requestsPerMinute: 7, tokensPerMinute: null },
            ...{ scopes: ['social', `model:${name}`], networks: ['10.0.0.0/8'] },
          },
        }),
      }
    },
    async 'keys rotate'() {
      const { workspaceId, keyId } = await makeCustomer(pool)
      return {
        line: ['keys', 'rotate', keyId, '--overlap', '60'],
        deed: () => ({
          ...{ action: 'key.rotated', workspaceId, subject: keyId },
          ...{ before: {}, after: { overlapSeconds: 60 } },
        }),
      }
    },
    async 'keys revoke'() {
      const { workspaceId, keyId } = await makeCustomer(pool)
      return {
        line: ['keys', 'revoke', keyId],
        deed: () => ({
          ...{ action: 'key.revoked', workspaceId, subject: keyId },
          ...{ before: { isRevoked: false }, after: { isRevoked: true } },
        }),
      }
    },
    async 'keys budget'() {
      const { workspaceId, keyId } = await makeCustomer(pool)
      await said('keys', 'budget', keyId, '5/day')
      return {
        line: ['keys', 'budget', keyId, '20/month'],
        deed: () => ({
          ...{ action: 'key.budget_set', workspaceId, subject: keyId },
          before: { budget: { period: 'day', usd: '5.000000000' } },
          after: { budget: { period: 'month', usd: '20.000000000' } },
        }),
      }
    },
    async 'keys assign'() {
      const { workspaceId, keyId } = await makeCustomer(pool)
      const { memberId } = await makeMember(pool, workspaceId)
      return {
        line: ['keys', 'assign', keyId, memberId],
        deed: () => ({
          ...{ action: 'key.assigned', workspaceId, subject: keyId },
          ...{ before: { memberId: null }, after: { memberId } },
        }),
      }
    },
    async 'budgets set'() {
      const { workspaceId } = await makeCustomer(pool)
      return {
        line: ['budgets', 'set', workspaceId, '5/week', '--tag', 'team=search'],
        async deed() {
          const { rows } = await pool.query("select id from budgets where subject = 'team=search' order by set_at desc")
          const after = { kind: 'tag', subject: 'team=search', period: 'week', usd: '5.000000000' }
          return { action: 'budget.set', workspaceId, subject: rows[0]?.id, before: null, after }
        },
      }
    },
    async 'budgets change'() {
      const { workspaceId } = await makeCustomer(pool)
      const id = idIn(await said('budgets', 'set', workspaceId, '5/day'))
      return {
        line: ['budgets', 'change', id, '7'],
        deed: () => ({
          ...{ action: 'budget.set', workspaceId, subject: id },
          ...{ before: { usd: '5.000000000' }, after: { usd: '7.000000000' } },
        }),
      }
    },
    async 'budgets remove'() {
      const { workspaceId } = await makeCustomer(pool)
      const id = idIn(await said('budgets', 'set', workspaceId, '5/day', '--end-user', '*'))
      return {
        line: ['budgets', 'remove', id],
        deed: () => ({
          ...{ action: 'budget.removed', workspaceId, subject: id },
          ...{ before: { kind: 'end_user', subject: '*', period: 'day', usd: '5.000000000' }, after: null },
        }),
      }
    },
    async 'grants revoke'() {
      const { workspaceId } = await makeCustomer(pool)
      const { id } = await makeGranted(pool, { workspaceId })
      return {
        line: ['grants', 'revoke', id],
        deed: () => ({
          ...{ action: 'grant.revoked', workspaceId, subject: id },
          ...{ before: { isRevoked: false }, after: { isRevoked: true } },
        }),
      }
    },
    async 'quota approve'() {
      const { workspaceId, id } = await quotaRequest()
      const limits = { requestsPerMinute: 900, tokensPerMinute: 1_000, concurrency: 7 }
      const before = { state: 'open', tier: null, requestsPerMinute: null, tokensPerMinute: null, concurrency: null }
      return {
        line: ['quota', 'approve', id, '--note', 'Fine.', '--rpm', '900', '--tpm', '1000', '--concurrency', '7'],
        deed: () => ({
          ...{ action: 'quota_request.approved', workspaceId, subject: id, before },
          after: { state: 'approved', tier: 'enterprise', ...limits },
        }),
      }
    },
    async 'quota refuse'() {
      const { workspaceId, id } = await quotaRequest()
      return {
        line: ['quota', 'refuse', id, '--note', 'Use batches.'],
        deed: () => ({
          ...{ action: 'quota_request.refused', workspaceId, subject: id },
          ...{ before: { state: 'open' }, after: { state: 'refused' } },
        }),
      }
    },
    async credit() {
      const { workspaceId, accountId } = await makeCustomer(pool)
      const subject = ids.next()
      return {
        line: ['credit', workspaceId, '5', '--kind', 'promotion', '--expires', '2099-01-31', '--id', subject],
        deed: () => ({
          ...{ action: 'account.credited', workspaceId, subject, before: null },
          after: { usd: '5.000000000', kind: 'promotion', accountId, expiresAt: '2099-01-31T00:00:00.000Z' },
        }),
      }
    },
    async 'charges refund'() {
      const { workspaceId, accountId, keyId } = await makeCustomer(pool, { paid: 5_000_000_000n })
      const call = callOf({ accountId, credentialId: keyId }, { hold: 2_000_000_000n })
      const session = await openSession(databaseUrl)
      await session.begin(call)
      await session.end(postOf(call, 1_000_000_000n))
      await session.close()
      const subject = ids.next()
      return {
        line: ['charges', 'refund', call.id, '--amount', '0.5', '--reason', 'Late.', '--id', subject],
        deed: () => ({
          ...{ action: 'charge.refunded', workspaceId, subject, before: null },
          after: { usd: '0.500000000', corrects: call.id, reason: 'Late.', kind: 'charge_reversal' },
        }),
      }
    },
    async 'people end-sessions'() {
      const { id, email } = await person()
      await pool.query(
        `insert into browser_sessions (id, hash, person_id, expires_at, address, agent, is_complete)
         values ($1, sha256($2), $3, clock_timestamp() + interval '1 day', '192.0.2.1', 'a browser', true)`,
        [ids.next(), Buffer.from(id), id],
      )
      return {
        line: ['people', 'end-sessions', email],
        deed: () => ({
          ...{ action: 'session.all_ended', workspaceId: null, subject: id },
          ...{ before: { sessions: 1 }, after: { sessions: 0 } },
        }),
      }
    },
    async 'people block'() {
      const { id } = await person()
      return {
        line: ['people', 'block', id, '--reason', 'Stolen mailbox.'],
        deed: () => ({
          ...{ action: 'person.blocked', workspaceId: null, subject: id, before: { isBlocked: false } },
          after: { isBlocked: true, reason: 'Stolen mailbox.', sessionsEnded: 0, grantsRevoked: 0 },
        }),
      }
    },
    async 'people unblock'() {
      const { id } = await person()
      await pool.query('update people set blocked_at = clock_timestamp() where id = $1', [id])
      return {
        line: ['people', 'unblock', id, '--reason', 'It is theirs again.'],
        deed: () => ({
          ...{ action: 'person.unblocked', workspaceId: null, subject: id, before: { isBlocked: true } },
          after: { isBlocked: false, reason: 'It is theirs again.' },
        }),
      }
    },
    async 'people factor-off'() {
      const { id } = await person()
      await pool.query('update people set totp = $2, totp_since = clock_timestamp() where id = $1', [
        id,
        seal.seal(new Secret('a key'), `person ${id} totp`),
      ])
      return {
        line: ['people', 'factor-off', id],
        deed: () => ({
          ...{ action: 'person.second_factor_changed', workspaceId: null, subject: id },
          ...{ before: { hasSecondFactor: true }, after: { hasSecondFactor: false } },
        }),
      }
    },
    async 'members add'() {
      const { workspaceId } = await makeCustomer(pool)
      const { id: personId, email } = await person()
      return {
        line: ['members', 'add', workspaceId, email, 'developer'],
        async deed() {
          const { rows } = await pool.query('select id from members where workspace_id = $1 and email = $2', [
            workspaceId,
            email,
          ])
          const after = { personId, role: 'developer' }
          return { action: 'member.added', workspaceId, subject: rows[0]?.id, before: null, after }
        },
      }
    },
    async 'members role'() {
      const { workspaceId, memberId } = await owned()
      return {
        line: ['members', 'role', workspaceId, memberId, 'billing'],
        deed: () => ({
          ...{ action: 'member.role_changed', workspaceId, subject: memberId },
          ...{ before: { role: 'owner' }, after: { role: 'billing' } },
        }),
      }
    },
    async 'members remove'() {
      const { workspaceId, memberId, personId } = await owned()
      return {
        line: ['members', 'remove', workspaceId, memberId],
        deed: () => ({
          ...{ action: 'member.removed', workspaceId, subject: memberId },
          ...{ before: { personId, role: 'owner' }, after: null },
        }),
      }
    },
    async 'members transfer'() {
      const { workspaceId, memberId, otherId } = await owned()
      await said('members', 'role', workspaceId, otherId, 'viewer')
      return {
        line: ['members', 'transfer', workspaceId, memberId, otherId],
        deed: () => ({
          ...{ action: 'workspace.transferred', workspaceId, subject: workspaceId },
          before: { [memberId]: 'owner', [otherId]: 'viewer' },
          after: { [memberId]: 'admin', [otherId]: 'owner' },
        }),
      }
    },
    async 'members invite'() {
      const { workspaceId } = await makeCustomer(pool)
      const email = `${another('invited')}@example.com`
      return {
        line: ['members', 'invite', workspaceId, email, 'viewer'],
        async deed() {
          const { rows } = await pool.query('select id from invitations where email = $1', [email])
          const after = { role: 'viewer' }
          return { action: 'invitation.made', workspaceId, subject: rows[0]?.id, before: null, after }
        },
      }
    },
    async 'prices set'() {
      await said('prices', 'set', 'tag_detail', '0.001', '--cost', '0.0005')
      const { rows } = await pool.query(
        "select max(version) as version from price_versions where operation = 'tag_detail'",
      )
      const version: number = rows[0]?.version
      return {
        line: ['prices', 'set', 'tag_detail', '0.002'],
        deed: () => ({
          ...{ action: 'price.set', workspaceId: null, subject: 'tag_detail' },
          before: { version, unitPrice: '0.001' },
          after: { version: version + 1, unitPrice: '0.002' },
        }),
      }
    },
    async 'prices account'() {
      const { workspaceId } = await makeCustomer(pool)
      await said('prices', 'account', workspaceId, 'tag_detail', '0.0007', '--test')
      return {
        line: ['prices', 'account', workspaceId, 'tag_detail', 'none', '--test'],
        deed: () => ({
          ...{ action: 'account_price.set', workspaceId, subject: 'tag_detail' },
          ...{ before: { unitPrice: '0.0007' }, after: null },
        }),
      }
    },
    async 'models set'() {
      const subject = await model()
      return {
        line: ['models', 'set', subject, '--output-cap', '20', '--image-tokens', '1600'],
        deed: () => ({
          ...{ action: 'model.changed', workspaceId: null, subject },
          before: { outputCap: 10, partTokens: {} },
          after: { outputCap: 20, partTokens: { image: 1_600 } },
        }),
      }
    },
    async 'models off'() {
      const subject = await model()
      const before = { enabled: true }
      return {
        line: ['models', 'off', subject, '--reason', 'too dear'],
        deed: () => ({
          ...{ action: 'model.switched_off', workspaceId: null, subject, before },
          after: { enabled: false, reason: 'too dear' },
        }),
      }
    },

    async 'models on'() {
      const subject = await model()
      await said('models', 'off', subject, '--reason', 'too dear')
      return {
        line: ['models', 'on', subject, '--reason', 'cheap again'],
        deed: () => ({
          ...{ action: 'model.switched_on', workspaceId: null, subject, before: { enabled: false } },
          after: { enabled: true, reason: 'cheap again' },
        }),
      }
    },

    ...switchScenarios('operations', 'operation', 'tag_detail'),
    ...switchScenarios('categories', 'category', 'traffic'),

    async 'models price'() {
      const subject = await model()
      return {
        line: ['models', 'price', subject, '--input', '0.50', '--output', '2'],
        deed: () => ({
          ...{ action: 'model.price_set', workspaceId: null, subject, before: null },
          after: { version: 1, input: '0.50', output: '2', ...noPrices, ...noProviderPrices },
        }),
      }
    },
    async 'models account'() {
      const { workspaceId } = await makeCustomer(pool)
      const name = await model()
      await said('models', 'price', name, '--input', '0.50', '--output', '2')
      await said('models', 'account', workspaceId, name, '0.9x')
      return {
        line: ['models', 'account', workspaceId, name, '0.8x'],
        deed: () => ({
          ...{ action: 'account_price.set', workspaceId, subject: `model:${name}` },
          ...{ before: { unitPrice: '0.9' }, after: { unitPrice: '0.8' } },
        }),
      }
    },
    async 'models import'() {
      const subject = await model()
      await said('models', 'price', subject, '--input', '0.50', '--output', '2')
      const file = `${credentialFile}-${made}.json`
      const price = { input: '0.6', output: '2', cache_read: '0.06' }
      writeFileSync(file, JSON.stringify({ format: 'farebox-prices/1', models: { [subject]: { price } } }))
      return {
        line: ['models', 'import', file, '--apply'],
        deed: () => ({
          ...{ action: 'model.price_set', workspaceId: null, subject },
          before: { version: 1, input: '0.50', cacheRead: null },
          after: { version: 2, input: '0.6', cacheRead: '0.06' },
        }),
      }
    },
    async 'models route'() {
      const { model: name, slot, route } = await upstream()
      return {
        line: [
          ...routeOf(name, slot),
          '--upstream-model',
          'sandbox/text',
          '--weight',
          '9',
          '--output-limit',
          'max_tokens',
        ],
        deed: () => ({
          ...{ action: 'route.changed', workspaceId: null, subject: route },
          before: { weight: 1, profile: plain },
          after: { weight: 9, profile: { ...plain, outputLimit: 'max_tokens' } },
        }),
      }
    },
    async 'models remove'() {
      const { model: subject, slot, route } = await upstream()
      await said('models', 'set', subject, '--display-name', 'a name')
      const own = { id: route, slot, protocol: 'openai', upstreamModel: 'sandbox/text' }
      const routes = [{ ...own, priority: 0, weight: 1, enabled: true, profile: plain }]
      return {
        line: ['models', 'remove', subject],
        deed: () => ({
          ...{ action: 'model.removed', workspaceId: null, subject, after: null },
          before: { ...settings, routes },
        }),
      }
    },
    async 'upstreams add'() {
      const { slot } = await upstream()
      return {
        line: ['upstreams', 'add', slot, vendorUrl, '--test', '--credential-file', credentialFile],
        async deed() {
          const { rows } = await pool.query('select id from upstreams where slot = $1 order by id desc', [slot])
          return {
            ...{ action: 'upstream.created', workspaceId: null, subject: rows[0]?.id },
            ...{ before: null, after: vendor(slot) },
          }
        },
      }
    },
    async 'upstreams off'() {
      const { id: subject } = await upstream()
      return {
        line: ['upstreams', 'off', subject],
        deed: () => ({
          ...{ action: 'upstream.changed', workspaceId: null, subject },
          ...{ before: { enabled: true }, after: { enabled: false } },
        }),
      }
    },
    async 'upstreams on'() {
      const { id: subject } = await upstream()
      await said('upstreams', 'off', subject)
      return {
        line: ['upstreams', 'on', subject],
        deed: () => ({
          ...{ action: 'upstream.changed', workspaceId: null, subject },
          ...{ before: { enabled: false }, after: { enabled: true } },
        }),
      }
    },
    async 'upstreams remove'() {
      const { id: subject, slot } = await upstream()
      return {
        line: ['upstreams', 'remove', subject],
        deed: () => ({
          ...{ action: 'upstream.removed', workspaceId: null, subject },
          ...{ before: vendor(slot), after: null },
        }),
      }
    },
    async 'upstreams probe'() {
      const { model: name, slot, route } = await upstream()
      await said('models', 'set', name, '--context-window', '200000', '--output-most', '64000')
      await said('models', 'price', name, '--input', '0.50', '--output', '2')
      return {
        line: ['upstreams', 'probe', slot, '--model', name, '--test', '--write'],
        deed: () => ({
          ...{ action: 'route.changed', workspaceId: null, subject: route },
          before: { profile: plain },
          after: { profile: { ...plain, outputLimit: 'max_completion_tokens' } },
        }),
      }
    },
    async 'tasks attach'() {
      const { workspaceId, workspace, keyId } = await makeCustomer(pool, { key: { mode: 'test' } })
      const { testAccountId: accountId } = workspace
      await setPaid(pool, accountId, 5_000_000_000n)
      const { id: upstreamId } = await upstream()
      const call = callOf({ accountId, credentialId: keyId }, { hold: 1_000n })
      const prompt = seal.seal(new Secret('a fox'), `task ${call.id} prompt`)
      await begin({ ...call, task: { model: 'a/model', prompt } })
      return {
        line: ['tasks', 'attach', call.id, '--upstream', upstreamId, '--name', 'job-1'],
        deed: () => ({
          ...{ action: 'task.attached', workspaceId, subject: call.id },
          before: { upstreamId: null, name: null },
          after: { upstreamId, name: 'job-1' },
        }),
      }
    },
    async 'ledger resolve'() {
      const { workspaceId, accountId, keyId } = await makeCustomer(pool, { paid: 5_000_000_000n })
      const call = callOf({ accountId, credentialId: keyId }, { hold: 2_000_000_000n })
      await begin(call)
      await pool.query('select mark_unsettled(array[$1::uuid], (select owner_id from holds where id = $1))', [call.id])
      return {
        line: ['ledger', 'resolve', call.id, '--charge', '2.5'],
        deed: () => ({
          ...{ action: 'call.resolved', workspaceId, subject: call.id },
          before: { state: 'unsettled' },
          after: { state: 'posted', usd: '2.000000000', overrun: '0.500000000' },
        }),
      }
    },
    async 'losses release'() {
      const route = `${another('gpt')}@openai:live`
      for (let n = 0; n < 2; n += 1) {
        const { accountId } = await makeCustomer(pool)
        await pool.query(
          'insert into losses (id, account_id, route, nanos, at) values ($1, $2, $3, 5, clock_timestamp())',
          [ids.next(), accountId, route],
        )
      }
      return {
        line: ['losses', 'release', '--route', route],
        deed: () => ({
          ...{ action: 'losses.released', workspaceId: null, subject: route },
          ...{ before: {}, after: { route, accounts: 2 } },
        }),
      }
    },
    async 'outbox retry'() {
      const { id, letter } = await deadLetter()
      return {
        line: ['outbox', 'retry', id],
        deed: () => ({
          ...{ action: 'outbox.retried', workspaceId: null, subject: id },
          ...{ before: { ...letter, state: 'dead' }, after: { ...letter, state: 'waiting' } },
        }),
      }
    },
    async 'outbox drop'() {
      const { id, letter } = await deadLetter()
      return {
        line: ['outbox', 'drop', id],
        deed: () => ({
          ...{ action: 'outbox.dropped', workspaceId: null, subject: id },
          ...{ before: { ...letter, state: 'dead' }, after: null },
        }),
      }
    },
    /** With another master key, so that everything that is sealed is to be sealed anew. */
    async 'secrets rotate'() {
      await upstream()
      const { rows } = await pool.query<{ what: string; count: number }>(
        `select 'credentials of upstreams' as what, count(credential)::integer from upstreams
         union all select 'prompts of tasks', count(prompt)::integer from tasks
         union all select 'messages of the outbox', count(sealed)::integer from outbox
         union all select 'second factors', count(totp)::integer from people`,
      )
      const values = Object.fromEntries(rows.filter(({ count }) => count > 0).map(({ what, count }) => [what, count]))
      return {
        line: ['secrets', 'rotate'],
        deed: () => ({
          ...{ action: 'secrets.rotated', workspaceId: null, subject: 'secrets.master_key' },
          before: { sealedWith: 'secrets.previous_master_key', values },
          after: { sealedWith: 'secrets.master_key' },
        }),
      }
    },
  }
  return scenarios
}
