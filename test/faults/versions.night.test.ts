import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startChild } from '../../harness/child.ts'
import { commitNamed } from '../../harness/commit.ts'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { releases } from '../../harness/releases.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { buildCommit, THIS_VERSION, type Version } from '../../harness/versions.ts'
import { MIGRATIONS_FOLDER, readMigrations } from '../../server/src/storage/migrations.ts'
import type { Edit } from '../planted/planted-bug.ts'
import { makeCopy } from '../planted/planted-copy.ts'
import { BEGIN, END, storedFunction } from '../planted/statements.ts'
import { type Caller, createCaller, Marks } from './caller.ts'
import type { Cluster, startCluster } from './cluster.ts'
import { History } from './history.ts'
import { restartMember } from './injector.ts'
import type { Member } from './member.ts'
import type { makePeople, Person } from './people.ts'
import { LEAVES_SLOWLY, requireUnharmed, startSteadyLoad } from './steady-load.ts'
import { cancelPath, heldFor, type Video } from './videos.ts'

/** How often all go to a new version, and one of them back to the release. */
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

/** A copy of the source with one more migration stands for the next version: there is a way up even while today is the release. */
function makeNextVersion() {
  const { folder, remove } = makeCopy({
    edits: [...BEGINS_WITH_REGION, ...ENDS_WITH_REGION, JUDGED],
    sql: NEXT_MIGRATION,
  })
  return { folder, program: path.join(folder, 'server/src/main.ts'), remove }
}

/** What starts the release is its own too: it knows the settings and the rows that it has. */
async function partsOf({ folder }: Version) {
  const own = (file: string) => import(path.join(folder, 'test/faults', file))
  const { startCluster: start } = (await own('cluster.ts')) as { startCluster: typeof startCluster }
  const { makePeople: make } = (await own('people.ts')) as { makePeople: typeof makePeople }
  return { startCluster: start, makePeople: make }
}

/** `farebox migrate`, as who rolls out a version does first; it applies what a database of the version before lacks. */
async function migrateBy({ folder, program }: Version, before: readonly string[], { postgres }: Cluster) {
  const startedAtMs = performance.now()
  const env = { ...process.env, FAREBOX_DATABASE_URL: postgres.url() }
  const child = startChild(process.execPath, [program, 'migrate'], { env })
  const { code } = await child.exited
  assert.equal(code, 0, child.output())
  const all = await migrationsOf(folder)
  const missing = all.slice(before.length)
  const said = missing.length === 0 ? 'The database is up to date.' : `Applied ${missing.join(', ')}.`
  assert.ok(child.output().includes(said), `${said}\n${child.output()}`)
  return { all, tookMs: Math.round(performance.now() - startedAtMs) }
}

async function migrationsOf(folder: string): Promise<readonly string[]> {
  const own = path.join(folder, path.relative(THIS_VERSION.folder, MIGRATIONS_FOLDER))
  return (await readMigrations(own)).map(({ file }) => file)
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

/** Money that is held across versions: videos are begun by one, and ended by whichever runs then. */
function createVideos({ caller, person, pool }: { caller: Caller; person: Person; pool: Cluster['pool'] }) {
  const marks = new Marks()
  const due = new Map<string, bigint>()

  async function make(words: string): Promise<string> {
    const video: Video = { words, duration: 3, resolution: '480P', n: 1, isLost: false }
    const mark = marks.make()
    const { told } = await caller.ask({ ...who(), what: 'video', mark, ...marks.video(mark, video) })
    const id = told.taskId ?? assert.fail(JSON.stringify(told))
    due.set(id, heldFor(video))
    return id
  }

  function who() {
    const [, key] = person.keys
    return { client: 'videos', person, key: key ?? assert.fail() }
  }

  return {
    make: () => make('sandbox:running-ms=5000'),
    /** Nobody makes it as long as it is not canceled. */
    makeWaiting: () => make('sandbox:pending-ms=86400000'),
    async cancel(id: string) {
      await caller.ask({ ...who(), what: 'cancel', path: cancelPath(id), method: 'POST', subject: id })
      due.set(id, 0n)
    },
    /** Each costs what it was to cost, once nobody is making any. */
    async requirePaid() {
      const open = async () => (await pool.query('select from tasks where ended_at is null')).rowCount
      await until(async () => (await open()) === 0, PATIENCE_MS, 'that every video has ended')
      const { rows } = await pool.query<{ id: string; amount: bigint }>(
        'select id, amount from charges where id = any ($1)',
        [[...due.keys()]],
      )
      assert.deepEqual(new Map(rows.map(({ id, amount }) => [id, amount])), due)
      return due.size
    },
  }
}

type Upgrade = {
  readonly release: Version
  /** Each after those before it, by its own migrations. */
  readonly versions: readonly Version[]
  readonly cluster: Cluster
  readonly videos: ReturnType<typeof createVideos>
}

/** From the release to each version and back, as often as there are rounds. How long each took to migrate. */
async function rollOut({ release, versions, cluster, videos }: Upgrade, released: readonly string[]) {
  const { gateways, worker } = cluster
  const first = gateways.slice(0, 1)
  const programOf = ({ program }: Version) => path.relative(release.folder, program)
  const waiting = await videos.makeWaiting()
  const migratedInMs: number[] = []
  let applied = released
  for (const version of versions) {
    const { all, tookMs } = await migrateBy(version, applied, cluster)
    applied = all
    migratedInMs.push(tookMs)
    await delay(SIDE_BY_SIDE_MS)
    // Whoever crashes in the middle of a rollout is started again as what it was.
    await worker.kill()
    await worker.start()
    for (const gateway of first) await restartMember(gateway)
    for (let round = 0; round < ROUNDS; round += 1) {
      await videos.make()
      await rollTo(programOf(version), [...gateways, worker])
      await videos.make()
      await rollTo(programOf(release), first)
    }
  }
  await videos.cancel(waiting)
  return migratedInMs
}

/** By whose functions calls were ended: only the next version notes a region. */
async function chargesIn({ pool }: Cluster) {
  const { rows } = await pool.query<{ noted: number; all: number }>(
    'select count(region)::integer as noted, count(*)::integer as all from charges',
  )
  const [{ noted, all } = { noted: 0, all: 0 }] = rows
  assert.ok(noted > 0 && noted < all, 'calls ended by the functions of more than one version')
  return { charges_before_the_last_migration: all - noted, charges_after_it: noted }
}

async function upgrade(history: History, release: Version, released: readonly string[]) {
  const next = makeNextVersion()
  const own = await partsOf(release)
  const cluster = await own.startCluster({
    folder: history.folder,
    seed,
    hasDisk: false,
    program: path.relative(release.folder, release.program),
    balancerSeconds: 60,
    env: LEAVES_SLOWLY,
  })
  try {
    const [person] = await own.makePeople(cluster.pool)
    assert.ok(person !== undefined)
    const caller = createCaller(cluster.url, history)
    const videos = createVideos({ caller, person, pool: cluster.pool })
    const stop = startSteadyLoad({ caller, person, seed, quotes: 0.1, looks: 0.1 })
    await delay(SIDE_BY_SIDE_MS)
    const ofRelease = history.operations.length
    const migratedInMs = await rollOut({ release, versions: [THIS_VERSION, next], cluster, videos }, released)
    await stop()
    const paid = await videos.requirePaid()
    await caller.close()
    await requireUnharmed(history, cluster)
    const charges = await chargesIn(cluster)
    const complaints = complaintsOf(cluster)
    assert.deepEqual(
      complaints.filter((line) => /cached plan|does not exist/.test(line)),
      [],
    )
    return {
      requests: history.operations.length,
      failed: 0,
      lost_charges: 0,
      videos: paid,
      migrated_in_ms: migratedInMs,
      requests_with_the_release_alone: ofRelease,
      ...charges,
      complaints_of_postgresql: complaints,
    }
  } finally {
    await cluster.stop()
    next.remove()
  }
}

describe('the last release, today and the next version side by side', () => {
  it('fail no request and lose no charge, across the migrations of both, on the way up and back', async (test) => {
    const [last] = releases().slice(-1)
    if (last === undefined || commitNamed(last.commit) === undefined)
      return test.skip('the commit of the last release is not in this clone')
    const release = buildCommit(last.commit)
    try {
      const history = new History(`versions-${seed}`)
      const figures = { release: last.version, ...(await upgrade(history, release, Object.keys(last.migrations))) }
      // What failed leaves its history behind.
      history.remove()
      test.diagnostic(JSON.stringify(figures))
      recordProof('versions', 'the last release, today and the next version, through HAProxy without retries', figures)
    } finally {
      release.remove()
    }
  })
})
