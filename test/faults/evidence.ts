import type pg from 'pg'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import type { ShownTask } from '../../sandbox/src/upstreams/video-tasks.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import type { Marks } from './caller.ts'
import type { Cluster } from './cluster.ts'
import type { History, Operation } from './history.ts'
import type { Trouble } from './injector.ts'
import type { Leaks } from './leaks.ts'
import { ABOUT_A_LINK } from './linked-accounts.ts'
import type { Person } from './people.ts'
import type { Reports } from './reports.ts'
import type { Resolutions } from './resolve.ts'
import type { Samples } from './sampler.ts'
import type { Question } from './speech.ts'
import type { Video } from './videos.ts'

export type ChargeRow = {
  readonly id: Id
  readonly account_id: Id
  /** Null for an id that never held anything. */
  readonly credential_id: Id | null
  readonly operation: string | null
  readonly outcome: 'posted' | 'voided'
  readonly held: bigint
  readonly amount: bigint
  readonly overrun: bigint
  readonly input_tokens: bigint
  readonly output_tokens: bigint
  readonly cache_read_tokens: bigint
  readonly cache_write_tokens: bigint
  readonly allowances: readonly Id[]
  /** PostgreSQL's own text, to the microsecond. */
  readonly begun_at: string | null
  readonly ended_at: string
}

export type EntryRow = {
  readonly id: Id
  readonly account_id: Id
  readonly kind: string
  readonly credited: bigint
  readonly charged: bigint
  readonly debt: bigint
  readonly overrun: bigint
  readonly corrects: Id | null
  readonly entered_at: string
}

export type TaskRow = {
  readonly id: Id
  readonly credential_id: Id
  readonly state: string
  readonly upstream_task: string | null
  readonly code: string | null
  readonly created_at: Date
  readonly ended_at: Date | null
}

/** Everything that the judge judges by, read once when all is quiet. */
export type Evidence = {
  readonly operations: readonly Operation[]
  readonly charges: ReadonlyMap<Id, ChargeRow>
  readonly entries: readonly EntryRow[]
  /** What was given back of each charge. */
  readonly givenBack: ReadonlyMap<Id, bigint>
  /** All that upstreams were asked for calls. */
  readonly asked: readonly JournalEntry[]
  /** Of that, what calls are for: of a task how it was created, and nothing about the tokens of a linked account. */
  readonly journal: readonly JournalEntry[]
  /** By the calls that created them: the rows of tasks, what callers asked for, and all that the upstream has made. */
  readonly tasks: ReadonlyMap<Id, TaskRow>
  readonly videos: ReadonlyMap<Id, Video>
  readonly upstreamTasks: readonly ShownTask[]
  readonly askedById: ReadonlyMap<Id, readonly JournalEntry[]>
  /** The ids under which a mark reached its upstream. */
  readonly idsByMark: ReadonlyMap<string, readonly Id[]>
  /** What the model of a call was asked. */
  readonly questions: ReadonlyMap<Id, Question>
  readonly revokedAt: ReadonlyMap<Id, string>
  readonly claimsLeft: readonly string[]
  readonly violations: readonly string[]
  readonly people: readonly Person[]
  readonly samples: Samples
  readonly troubles: readonly Trouble[]
  readonly resolutions: Resolutions
  readonly reports: Reports
  readonly leaks: Leaks
  readonly cluster: Cluster
}

type Given = Pick<Evidence, 'people' | 'samples' | 'troubles' | 'resolutions' | 'reports' | 'leaks' | 'cluster'> & {
  readonly history: History
  readonly marks: Marks
}

export async function gatherEvidence({ history, marks, ...given }: Given): Promise<Evidence> {
  const { pool, upstream } = given.cluster
  // What has no id of ours an operator asked, to see what a call had used.
  const asked = (await upstream.journal()).filter(({ request_id }) => request_id !== null)
  const journal = asked.filter(({ path }) => !ASKS_ABOUT.test(path) && !ABOUT_A_LINK.test(path))
  const upstreamTasks = await upstream.videoTasks()
  const charges = await chargesIn(pool)
  const entries = await entriesIn(pool)
  const byCall = Map.groupBy(journal, ({ request_id }) => request_id ?? '')
  const marked = Map.groupBy(journal, (entry) => marks.of(entry) ?? '')
  const asking = new Map(history.operations.map(({ mark, question }) => [mark, question]))
  const filming = new Map(history.operations.map(({ mark, video }) => [mark, video]))
  const corrections = Map.groupBy(entries, ({ corrects }) => corrects ?? '')
  return {
    ...given,
    operations: history.operations,
    charges: new Map(charges.map((row) => [row.id, row])),
    entries,
    asked,
    givenBack: new Map([...corrections].map(([id, rows]) => [id, -rows.reduce((sum, row) => sum + row.charged, 0n)])),
    journal,
    tasks: new Map((await tasksIn(pool)).map((row) => [row.id, row])),
    videos: new Map([
      ...history.operations.flatMap(({ told, video }) => pairOf(told.id, video)),
      ...journal.flatMap((entry) => pairOf(entry.request_id ?? undefined, filming.get(marks.of(entry)))),
    ]),
    upstreamTasks,
    askedById: byCall,
    idsByMark: new Map([...marked].map(([mark, rows]) => [mark, rows.map(({ request_id }) => request_id ?? '')])),
    questions: new Map(
      journal.flatMap((entry) => {
        const question = asking.get(marks.of(entry))
        return question === undefined ? [] : [[entry.request_id ?? '', question]]
      }),
    ),
    revokedAt: await revocationsIn(pool),
    claimsLeft: await claimsWithoutCall(pool),
    violations: (await verifyLedger(pool)).map(({ promise, rows }) => `${promise}: ${rows.join(', ')}`),
  }
}

/** A question about a task, or the wish to end it: by the name of the call that created it. */
const ASKS_ABOUT = /^\/video\/tasks\//

function pairOf(id: Id | undefined, video: Video | undefined): [Id, Video][] {
  return id === undefined || video === undefined ? [] : [[id, video]]
}

async function tasksIn(pool: pg.Pool): Promise<TaskRow[]> {
  const { rows } = await pool.query<TaskRow>(
    'select id, credential_id, state, upstream_task, code, created_at, ended_at from tasks order by id',
  )
  return rows
}

async function chargesIn(pool: pg.Pool): Promise<ChargeRow[]> {
  const { rows } = await pool.query<ChargeRow>(
    `select id, account_id, credential_id, operation, outcome, held, amount, overrun,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at::text, ended_at::text from charges order by ended_at, id`,
  )
  return rows
}

async function entriesIn(pool: pg.Pool): Promise<EntryRow[]> {
  const { rows } = await pool.query<EntryRow>(
    `select id, account_id, kind, credited, charged, debt, overrun, corrects, entered_at::text
     from entries order by entered_at, id`,
  )
  return rows
}

async function revocationsIn(pool: pg.Pool): Promise<ReadonlyMap<Id, string>> {
  const { rows } = await pool.query<{ id: Id; at: string }>(
    'select id, revoked_at::text as at from api_keys where revoked_at is not null',
  )
  return new Map(rows.map(({ id, at }) => [id, at]))
}

async function claimsWithoutCall(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ claim: string }>(
    `select scope || ' ' || key || ' of ' || call_id as claim from claims where kept_until is null
     or not exists (select from charges where charges.id = call_id and amount > 0)`,
  )
  return rows.map(({ claim }) => claim)
}
