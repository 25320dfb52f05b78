import type pg from 'pg'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import type { Marks } from './caller.ts'
import type { Cluster } from './cluster.ts'
import type { History, Operation } from './history.ts'
import type { Trouble } from './injector.ts'
import type { Leaks } from './leaks.ts'
import type { Person } from './people.ts'
import type { Reports } from './reports.ts'
import type { Resolutions } from './resolve.ts'
import type { Samples } from './sampler.ts'
import type { Question } from './speech.ts'

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

/** Everything that the judge judges by, read once when all is quiet. */
export type Evidence = {
  readonly operations: readonly Operation[]
  readonly charges: ReadonlyMap<Id, ChargeRow>
  readonly entries: readonly EntryRow[]
  /** What was given back of each charge. */
  readonly givenBack: ReadonlyMap<Id, bigint>
  readonly journal: readonly JournalEntry[]
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
  const journal = (await upstream.journal()).filter(({ request_id }) => request_id !== null)
  const charges = await chargesIn(pool)
  const entries = await entriesIn(pool)
  const asked = Map.groupBy(journal, ({ request_id }) => request_id ?? '')
  const marked = Map.groupBy(journal, (entry) => marks.of(entry) ?? '')
  const asking = new Map(history.operations.map(({ mark, question }) => [mark, question]))
  const corrections = Map.groupBy(entries, ({ corrects }) => corrects ?? '')
  return {
    ...given,
    operations: history.operations,
    charges: new Map(charges.map((row) => [row.id, row])),
    entries,
    givenBack: new Map([...corrections].map(([id, rows]) => [id, -rows.reduce((sum, row) => sum + row.charged, 0n)])),
    journal,
    askedById: asked,
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
