import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { expirePromotions } from '../../server/src/ledger/credit.ts'
import { ids, makeCustomer } from '../identity/customers.ts'
import { makeMember } from '../identity/granted.ts'
import { callOf, openSession, postOf } from '../ledger/session.ts'
import { connect } from '../ledger/world.ts'
import { runMortal, startShell } from './command-shell.ts'
import { assertAgreed, assertCallsAgreed, digestOf } from './operators-money.ts'

/** In the gate a few statements of each command, which go round with the seed. */
const SAMPLE = count({ full: 1_000, reduced: 3 })
const LIVES = 1_000_000

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
const session = await openSession(url)
after(() => Promise.all([session.close(), pools.close()]))

const env = {
  ...process.env,
  FAREBOX_HTTP_TRUSTED_PROXIES: 'none',
  FAREBOX_HTTP_SITE_URL: 'https://site.example',
  FAREBOX_SECRETS_MASTER_KEY: makeMasterKey().reveal(),
}
/** So that PostgreSQL shows whether somebody is still at it. */
const mortalUrl = new URL(url)
mortalUrl.searchParams.set('application_name', 'mortal')
const mortalEnv = { ...env, FAREBOX_DATABASE_URL: mortalUrl.href }
const { said } = startShell({ ...env, FAREBOX_DATABASE_URL: url })

async function makeCharged() {
  const { workspaceId, accountId, keyId } = await makeCustomer(pool)
  await makeMember(pool, workspaceId)
  const payment = ids.next()
  const promotion = ids.next()
  await said('credit', workspaceId, '4', '--id', payment)
  await said('credit', workspaceId, '3.5', '--kind', 'promotion', '--id', promotion)
  const call = callOf({ accountId, credentialId: keyId }, { hold: 4_000_000_000n })
  await session.begin(call)
  await session.end(postOf(call, 3_000_000_000n))
  return { workspaceId, accountId, calls: [call.id], payment, promotion }
}

type Charged = Awaited<ReturnType<typeof makeCharged>>

/** Commands, and how many lines of the ledger, of the audit log and of the outbox each leaves. */
const COMMANDS: Readonly<Record<string, readonly [line: (of: Charged) => readonly string[], left: readonly number[]]>> =
  {
    'credit of a payment': [
      ({ workspaceId }) => [
        'credit',
        workspaceId,
        '5',
        '--reference',
        `transfer ${workspaceId}`,
        '--note',
        'By hand.',
        '--id',
        idFor(workspaceId),
      ],
      [1, 1, 0],
    ],
    'credit of a promotion': [
      ({ workspaceId }) => ['credit', workspaceId, '5', '--kind', 'promotion', '--id', idFor(workspaceId)],
      [1, 1, 0],
    ],
    'credit --reverse of a payment': [({ payment }) => ['credit', '--reverse', payment], [1, 1, 0]],
    'credit --reverse of a promotion': [({ promotion }) => ['credit', '--reverse', promotion], [1, 1, 0]],
    'charges refund': [({ calls }) => ['charges', 'refund', calls[0] ?? '', '--reason', 'It was cut off.'], [1, 1, 1]],
    'charges refund --goodwill of a part': [
      ({ calls }) => ['charges', 'refund', calls[0] ?? '', '--amount', '1.25', '--goodwill', '--reason', 'A gift.'],
      [1, 1, 1],
    ],
  }

/** One for each workspace, so that the line is the same when it is sent again. */
const idOf = new Map<Id, Id>()
function idFor(workspaceId: Id): Id {
  const id = idOf.get(workspaceId) ?? ids.next()
  idOf.set(workspaceId, id)
  return id
}

async function linesOf({ workspaceId, accountId }: Charged): Promise<readonly number[]> {
  const { rows } = await pool.query(
    `select (select count(*)::integer from entries where account_id = $1) as entries,
       (select count(*)::integer from audit where workspace_id = $2) as audit,
       (select count(*)::integer from outbox) as letters`,
    [accountId, workspaceId],
  )
  return Object.values(rows[0] ?? assert.fail())
}

async function untilNoticed(): Promise<void> {
  const lives = "select from pg_stat_activity where application_name = 'mortal'"
  await until(async () => (await pool.query(lives)).rowCount === 0, PATIENCE_MS, 'that PostgreSQL has noticed')
}

describe('a command about money that is killed', () => {
  for (const [name, [line, left]] of Object.entries(COMMANDS))
    it(`has done all of it or nothing, and the same line again does it once: ${name}, after each statement`, async () => {
      const first = await makeCharged()
      const lived = await runMortal(mortalEnv, LIVES, ...line(first))
      assert.equal(lived.code, 0, lived.output)
      const statements = lived.statements ?? assert.fail('statements are counted')
      assert.ok(statements > 3)
      await untilNoticed()
      // Those around the commit are always among them.
      const moments = Array.from({ length: statements }, (_, n) => n + 1).filter(
        (n) => isFullProof || n >= statements - 1 || (n + seed) % Math.ceil(statements / SAMPLE) === 0,
      )
      const figures = { statements, kills: 0, nothing: 0, all: 0 }
      for (const moment of moments) {
        const charged = await makeCharged()
        const [before, digest] = [await linesOf(charged), await digestOf(pool, charged)]
        const { code, output } = await runMortal(mortalEnv, moment, ...line(charged))
        assert.equal(code, -1, output)
        figures.kills += 1
        await untilNoticed()
        // What a promotion that was ended has left is taken by the command, and by a worker where that died before it came to it.
        await expirePromotions(pool)
        await assertAgreed(pool, charged)
        const isDone = (await digestOf(pool, charged)) !== digest
        figures[isDone ? 'all' : 'nothing'] += 1
        const after = before.map((one, place) => one + (left[place] ?? 0))
        if (isDone) assert.deepEqual(await linesOf(charged), after, `after statement ${moment}`)
        await said(...line(charged))
        const done = await digestOf(pool, charged)
        await said(...line(charged))
        assert.equal(await digestOf(pool, charged), done)
        await assertAgreed(pool, charged)
        await assertCallsAgreed(pool, charged)
      }
      assert.ok(figures.kills > 0 && figures.nothing > 0)
      recordProof('money-kills', name, figures)
    })
})
