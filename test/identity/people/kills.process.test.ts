import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { count, isFullProof, recordProof, seed, sometimes } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { findAccessToken } from '../../../server/src/grants/access-tokens.ts'
import { findGrant } from '../../../server/src/grants/grants.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { createWorkspace } from '../../../server/src/workspaces/workspaces.ts'
import { ACTOR, ids } from '../customers.ts'
import { makeGranted } from '../granted.ts'
import { rowsOf } from '../secrets-nowhere-search.ts'
import { type Deed, perform } from './deeds.ts'
import type { Mortal, Survived } from './mortal.ts'
import {
  anotherAddress,
  anotherVisitor,
  CREDIT,
  connectPeople,
  countOf,
  joinAs,
  PASSWORD,
  workspaceOf,
} from './world.ts'

/** A process is killed after each of the statements of a sign-up, an invitation and so on: all of it is done, or nothing. */
const PROOF = 'people-kills'
/** In the gate a few statements of each, which go round with the seed. */
const SAMPLE = count({ full: 1_000, reduced: 1 })

const { url } = await freshDatabase()
const world = connectPeople(url)
const { people, pool, masterKey, join, tokenFor, letters } = world
after(() => world.close())

/** So that PostgreSQL shows whether somebody is still at it. */
const mortalUrl = (() => {
  const named = new URL(url)
  named.searchParams.set('application_name', 'mortal')
  return named.href
})()

/** What survives, and null for who was killed. */
async function run(deed: Deed, dieAfter: number | null): Promise<Survived | null> {
  const victim = fork(path.join(import.meta.dirname, 'mortal.ts'))
  const { address } = anotherVisitor()
  victim.send({ url: mortalUrl, masterKey: masterKey.reveal(), deed, address, dieAfter } satisfies Mortal)
  const told: Survived[] = []
  victim.on('message', (message: Survived) => told.push(message))
  const [, signal] = await once(victim, 'exit')
  assert.equal(signal, told.length === 0 ? 'SIGKILL' : null)
  const alive = () => countOf(pool, "select count(*) from pg_stat_activity where application_name = 'mortal'")
  await until(async () => (await alive()) === 0, PATIENCE_MS, 'that PostgreSQL has noticed')
  return told[0] ?? null
}

/** A digest of everything but counts of attempts, which are no part of any change. */
async function everything(): Promise<string> {
  const places = (await rowsOf(pool)).filter(({ where }) => where !== 'table public.door_attempts')
  return hash('sha256', places.map(({ where, content }) => `${where}\n${content}`).join('\n'))
}

type Prepared = {
  readonly deed: Deed
  /** Throws where it is not all there. */
  readonly assertWhole: () => Promise<void>
  /** What doing it again comes to, once it is whole. */
  readonly again: string
}

async function owner() {
  const email = anotherAddress()
  const personId = await join(email)
  return { email, personId, workspaceId: await workspaceOf(people, personId) }
}

const SCENARIOS: Readonly<Record<string, () => Promise<Prepared>>> = {
  async 'a sign-up'() {
    const email = anotherAddress()
    return {
      deed: { do: 'sign up', email, password: PASSWORD },
      again: 'done',
      async assertWhole() {
        const sent = await letters(email)
        assert.ok(sent.length >= 1 && sent.every(({ what }) => what === 'verify'))
        const links = await countOf(
          pool,
          'select count(*) from mailed_links join people on people.id = person_id where email = $1',
          [email],
        )
        assert.equal(links, sent.length)
        assert.deepEqual(await people.readVerification(await tokenFor(email, 'verify'), anotherVisitor()), { email })
      },
    }
  },
  async 'a verification'() {
    const email = anotherAddress()
    const { id: named } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Named', ownerEmail: email })
    await people.signUp(anotherVisitor(), { name: 'Some One', email, password: PASSWORD })
    return {
      deed: { do: 'verify', token: await tokenFor(email, 'verify') },
      again: 'nothing',
      async assertWhole() {
        const { rows } = await pool.query('select id, verified_at, password from people where email = $1', [email])
        assert.ok(rows[0]?.verified_at instanceof Date && rows[0]?.password !== null)
        const workspaces = await people.workspacesOf(rows[0].id)
        assert.deepEqual(workspaces.map(({ id }) => id).includes(named), true)
        assert.equal(workspaces.length, 2)
        const credited = await countOf(
          pool,
          `select sum(credited) / ${CREDIT} from accounts join workspaces on live_account_id = accounts.id
           join members on workspace_id = workspaces.id where person_id = $1`,
          [rows[0].id],
        )
        assert.equal(credited, 1)
        assert.equal(
          await countOf(pool, 'select count(*) from audit where actor = $1', [`member ${rows[0].id}`]),
          5,
          'verified, a workspace, its test money, a credit, a membership',
        )
      },
    }
  },
  async 'a reset'() {
    const { email, personId } = await owner()
    const old = await world.signedIn(email)
    await people.askReset(anotherVisitor(), email)
    const password = 'another good password'
    return {
      deed: { do: 'reset', token: await tokenFor(email, 'reset'), password },
      again: 'nothing',
      async assertWhole() {
        assert.equal(await people.sessionOf(old), null)
        assert.equal((await people.listSessions(personId)).length, 1)
        assert.equal((await letters(email)).at(-1)?.what, 'password_changed')
        assert.notEqual(await people.signIn(anotherVisitor(), { email, password }), null)
        await pool.query('delete from browser_sessions where id = (select max(id::text)::uuid from browser_sessions)')
      },
    }
  },
  async 'an invitation'() {
    const { personId: by, workspaceId } = await owner()
    const email = anotherAddress()
    return {
      deed: { do: 'invite', by, workspaceId, email, role: 'viewer' },
      again: 'done',
      async assertWhole() {
        const open = (await people.invitationsOf(workspaceId)).filter((one) => one.email === email)
        assert.equal(open.length, 1)
        const shown = await people.readInvitation(await tokenFor(email, 'invitation'), anotherVisitor())
        assert.equal(shown?.email, email)
      },
    }
  },
  async 'an acceptance'() {
    const { personId: by, workspaceId } = await owner()
    const email = anotherAddress()
    const personId = await join(email)
    await people.invite(by, workspaceId, { email, role: 'viewer' }, anotherVisitor())
    return {
      deed: { do: 'join', personId, token: await tokenFor(email, 'invitation') },
      again: 'nothing',
      async assertWhole() {
        const members = await people.membersOf(workspaceId)
        assert.deepEqual(
          members.map(({ role }) => role),
          ['owner', 'viewer'],
        )
        assert.deepEqual(await people.invitationsOf(workspaceId), [])
      },
    }
  },
  async 'a grant'() {
    const { personId, workspaceId } = await owner()
    return {
      deed: { do: 'grant', personId, workspaceId },
      again: 'done',
      assertWhole: async () => assert.ok((await wholeGrants(workspaceId)) >= 1),
    }
  },
  async 'an access token'() {
    const { personId, workspaceId } = await owner()
    const { id: grantId } = await makeGranted(pool, { personId, workspaceId })
    const digest = hash('sha256', grantId)
    return {
      deed: { do: 'issue', grantId, hash: digest },
      // There is one with this hash already.
      again: '23505',
      async assertWhole() {
        assert.equal((await findAccessToken(pool, Buffer.from(digest, 'hex')))?.grantId, grantId)
        const recorded = "select count(*) from audit where subject = $1 and action = 'grant.token_issued'"
        assert.equal(await countOf(pool, recorded, [grantId]), 2)
        assert.equal(await countOf(pool, 'select count(*) from change_log where key = $1', [digest]), 1)
      },
    }
  },
  async 'a budget of a grant'() {
    const { personId, workspaceId } = await owner()
    const { id: grantId } = await makeGranted(pool, { personId, workspaceId })
    return {
      deed: { do: 'set budget', grantId, amount: '7' },
      again: 'done',
      async assertWhole() {
        assert.deepEqual((await findGrant(pool, grantId))?.budget, { period: 'total', amount: 7n })
        const worth =
          "select sum(amount) from allowances where period = 'month' and account_id = (select account_id from credentials where id = $1)"
        assert.equal(await countOf(pool, worth, [grantId]), 0, 'the one before it is worth nothing')
      },
    }
  },
  async 'a revocation of a grant'() {
    const { personId, workspaceId } = await owner()
    const { id: grantId } = await makeGranted(pool, { personId, workspaceId })
    return {
      deed: { do: 'revoke', grantId },
      again: 'done',
      async assertWhole() {
        const { rows } = await pool.query(
          `select active, revoked_at is not null as revoked, (select count(*) from access_tokens where grant_id = g.id)::integer as tokens,
             exists (select from audit where subject = g.id::text and action = 'grant.revoked') as audited
           from grants g join credentials c on c.id = g.id where g.id = $1`,
          [grantId],
        )
        assert.deepEqual(rows, [{ active: false, revoked: true, tokens: 0, audited: true }])
      },
    }
  },
  async 'a transfer'() {
    const { personId: by, workspaceId } = await owner()
    const { memberId: to } = await joinAs(world, 'viewer', { by, workspaceId })
    await people.invite(by, workspaceId, { email: anotherAddress(), role: 'owner' }, anotherVisitor())
    return {
      deed: { do: 'transfer', by, workspaceId, to },
      again: 'forbidden',
      async assertWhole() {
        const members = await people.membersOf(workspaceId)
        assert.deepEqual(
          members.map(({ role }) => role),
          ['admin', 'owner'],
        )
        assert.deepEqual(await people.invitationsOf(workspaceId), [])
      },
    }
  },
}

/** Grants of a workspace, as everything says that belongs to one: each is all there. */
async function wholeGrants(workspaceId: Id): Promise<number> {
  const { rows } = await pool.query(
    `select count(*)::integer as grants, count(c.id)::integer as credentials, count(b.id)::integer as allowances,
       (select count(*) from audit where action = 'grant.made' and workspace_id = $1)::integer as audited,
       count(distinct l.key)::integer as told
     from grants g left join credentials c on c.id = g.id left join allowances b on b.id = g.allowance_id
     left join change_log l on l.topic = 'key' and l.key = g.id::text where g.workspace_id = $1`,
    [workspaceId],
  )
  const { grants, ...others } = rows[0]
  for (const [what, found] of Object.entries(others)) assert.equal(found, grants, what)
  return grants
}

/** After which statements, of so many: all, or a few that go round. */
function momentsOf(statements: number): readonly number[] {
  const all = Array.from({ length: statements }, (_, n) => n + 1)
  return isFullProof ? all : all.filter((n) => (n + seed) % Math.ceil(statements / SAMPLE) === 0)
}

describe('a process that is killed between two statements', () => {
  for (const [name, prepare] of Object.entries(SCENARIOS))
    it(`leaves all or nothing of ${name}, and what is left can be done again`, async () => {
      const first = await prepare()
      const survived = await run(first.deed, null)
      assert.equal(survived?.done, 'done')
      await first.assertWhole()
      const moments = momentsOf(survived?.statements ?? 0)
      const figures = { statements: survived?.statements ?? 0, kills: 0, nothing: 0, whole: 0 }
      for (const moment of moments) {
        const { deed, assertWhole, again } = await prepare()
        const before = await everything()
        if ((await run(deed, moment)) === null) figures.kills += 1
        const isUndone = (await everything()) === before
        if (!isUndone) await assertWhole()
        figures[isUndone ? 'nothing' : 'whole'] += 1
        const { address } = anotherVisitor()
        assert.equal(await perform(world, deed, address), isUndone ? 'done' : again, `after statement ${moment}`)
        await assertWhole()
      }
      assert.ok(figures.kills > 0)
      assert.deepEqual(await verifyLedger(pool), [])
      sometimes(figures.nothing > 0 && figures.whole > 0, 'kills before and after the commit')
      recordProof(PROOF, name, figures)
    })
})
