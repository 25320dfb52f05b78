import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startChild } from '../../harness/child.ts'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import type { Edit } from '../planted/planted-bug.ts'
import { makeCopy } from '../planted/planted-copy.ts'
import { BEGIN, END, storedFunction } from '../planted/statements.ts'
import { createCaller } from './caller.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { History } from './history.ts'
import { restartMember } from './injector.ts'
import type { Member } from './member.ts'
import { makePeople } from './people.ts'
import { LEAVES_SLOWLY, requireUnharmed, startSteadyLoad } from './steady-load.ts'

const THIS_VERSION = 'server/src/main.ts'
/** How often all go to the new version, and one of them back. */
const ROUNDS = count({ full: 3, reduced: 1 })
const SIDE_BY_SIDE_MS = count({ full: 2_000, reduced: 1_000 })

/** What the next version's begin and end do more: they note where a call was made. */
const BEGINS_WITH_REGION: readonly Edit[] = [
  {
    file: BEGIN,
    find: 'end_user, end_user_label, tags)\n  select',
    replace: 'end_user, end_user_label, tags, region)\n  select',
  },
  {
    file: BEGIN,
    find: 'call_tags[i]::text[]\n',
    replace: "call_tags[i]::text[], 'home'\n",
  },
]
const ENDS_WITH_REGION: readonly Edit[] = [
  {
    file: END,
    find: 'end_user_label, tags)\n    values',
    replace: 'end_user_label, tags, region)\n    values',
  },
  {
    file: END,
    find: 'own.tags);',
    replace: 'own.tags, own.region);',
  },
  {
    file: END,
    find: 'end_user_label, tags)\n    select',
    replace: 'end_user_label, tags, region)\n    select',
  },
  {
    file: END,
    find: 'hold.tags\n    from',
    replace: 'hold.tags, hold.region\n    from',
  },
]

/** Expands the schema in the ways that versions do. */
const NEXT_MIGRATION = `
-- Every call locks its account first. So nobody has one of the tables and waits for another that we have.
lock table accounts in access exclusive mode;
alter table holds add column region text;
alter table charges add column region text;
create index charges_of_region on charges (region, ended_at);
create table regions (name text primary key, opened_at timestamptz not null default clock_timestamp());
insert into regions values ('home');
`
/** Statements of this version know no regions: from then on all calls are judged. */
const JUDGED: Edit = { file: storedFunction('calls_may_fit'), find: 'return true', replace: 'return false' }

/** A copy of the source with one more migration stands for the next version. */
function makeNextVersion() {
  const { folder, remove } = makeCopy({
    edits: [...BEGINS_WITH_REGION, ...ENDS_WITH_REGION, JUDGED],
    sql: NEXT_MIGRATION,
  })
  return { program: path.relative(ROOT, path.join(folder, THIS_VERSION)), remove }
}

/** `farebox migrate`, as who rolls out a version does first. */
async function migrateBy(program: string, { postgres }: Cluster): Promise<number> {
  const startedAtMs = performance.now()
  const env = { ...process.env, FAREBOX_DATABASE_URL: postgres.url() }
  const child = startChild(process.execPath, [path.join(ROOT, program), 'migrate'], { env })
  const { code } = await child.exited
  assert.equal(code, 0, child.output())
  assert.match(child.output(), /Applied \d{4}_planted\.sql\./)
  return Math.round(performance.now() - startedAtMs)
}

/** Processes one after another to a version, each beside those of the other. */
async function rollTo(program: string, members: readonly Member[]): Promise<void> {
  for (const member of members) {
    member.runs(program)
    await restartMember(member)
    await delay(SIDE_BY_SIDE_MS)
  }
}

/** What PostgreSQL complained of, once each. */
function complaintsOf({ postgres }: Cluster): readonly string[] {
  const lines = postgres.log().split('\n')
  return [...new Set(lines.flatMap((line) => /(?:ERROR|FATAL|PANIC): +(.*)/.exec(line)?.[1] ?? []))]
}

describe('two versions side by side, across a migration that expands the schema', () => {
  it('fail no request and lose no charge, on the way to the new one and back', async (test) => {
    const history = new History(`versions-${seed}`)
    const cluster = await startCluster({
      folder: history.folder,
      seed,
      hasDisk: false,
      program: THIS_VERSION,
      balancerSeconds: 60,
      env: LEAVES_SLOWLY,
    })
    const { pool, gateways, worker } = cluster
    const next = makeNextVersion()
    try {
      const [person] = await makePeople(pool)
      assert.ok(person !== undefined)
      const caller = createCaller(cluster.url, history)
      const stop = startSteadyLoad({ caller, person, seed, quotes: 0.1, looks: 0.1 })
      await delay(SIDE_BY_SIDE_MS)

      const migratedInMs = await migrateBy(next.program, cluster)
      await delay(SIDE_BY_SIDE_MS)
      // Whoever crashes in the middle of a rollout is started again as what it was.
      await worker.kill()
      await worker.start()
      await restartMember(gateways[0] ?? assert.fail())

      const sideBySideFrom = history.operations.length
      for (let round = 0; round < ROUNDS; round += 1) {
        await rollTo(next.program, [...gateways, worker])
        await rollTo(THIS_VERSION, gateways.slice(0, 1))
      }
      await stop()
      await caller.close()

      await requireUnharmed(history, cluster)
      const { rows } = await pool.query<{ noted: number; all: number }>(
        'select count(region)::integer as noted, count(*)::integer as all from charges',
      )
      const [{ noted, all } = { noted: 0, all: 0 }] = rows
      assert.ok(noted > 0 && noted < all, 'calls ended by the functions of both versions')
      const complaints = complaintsOf(cluster)
      assert.deepEqual(
        complaints.filter((line) => /cached plan|does not exist/.test(line)),
        [],
      )

      const shown = {
        requests: history.operations.length,
        failed: 0,
        lost_charges: 0,
        migrated_in_ms: migratedInMs,
        requests_with_both_versions: history.operations.length - sideBySideFrom,
        charges_before_the_migration: all - noted,
        charges_after_it: noted,
        complaints_of_postgresql: complaints,
      }
      test.diagnostic(JSON.stringify(shown))
      recordProof('versions', 'old and new side by side, through HAProxy without retries', shown)
    } finally {
      await cluster.stop()
      next.remove()
    }
    history.remove()
  })
})
