import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { isFullProof, recordProof } from '../../harness/proof.ts'
import type { Cut, Direction, Place } from '../../harness/tcp-proxy.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS } from '../../harness/until.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { type Case, measure, type Run, runAll, SLACK_MS } from './cut-rig.ts'
import { connect } from './world.ts'

const PROOF = 'ledger-cuts'
/** Short enough to be waited for again and again, and on a busy machine long enough for what nothing interrupts. */
const SHORT = isFullProof
  ? { beginDeadlineMs: 500, endDeadlineMs: 500, moneyQueryTimeoutMs: 250, connectTimeoutMs: 250 }
  : { beginDeadlineMs: 2_000, endDeadlineMs: 2_000, moneyQueryTimeoutMs: 1_000, connectTimeoutMs: 1_000 }
/** The deadlines of the product at full counts; else such as no busy machine meets. */
const LONG = isFullProof
  ? { beginDeadlineMs: 5_000, endDeadlineMs: 10_000, moneyQueryTimeoutMs: 2_500 }
  : { beginDeadlineMs: PATIENCE_MS, endDeadlineMs: PATIENCE_MS, moneyQueryTimeoutMs: 2_500 }
const CUTS: readonly Cut[] = ['reset', 'end']
const DIRECTIONS: readonly Direction[] = ['toServer', 'toClient']
/** Of an answer's bytes these many may be missing in another one: it carries three times for each of two calls, whose text varies. */
const VARYING_BYTES = 48

const database = await freshDatabase()
const { pools: observers } = connect(database.url)
after(() => observers.close())

/** Every boundary of messages, and for each message its first byte, its middle and all but its last byte. */
function messagePlaces(messages: number): Place[] {
  const between = Array.from({ length: messages + 1 }, (_, afterMessages) => ({ afterMessages }))
  const within = between
    .slice(0, messages)
    .flatMap((place) => (['header', 'half', 'allButOne'] as const).map((part) => ({ ...place, part })))
  return [...between, ...within]
}

function bytePlaces(bytes: number): Place[] {
  return Array.from({ length: bytes + 1 }, (_, afterBytes) => ({ afterBytes }))
}

type Sizes = Awaited<ReturnType<typeof measure>>

/** Cases for every `nth` place of both directions, cut by RST and by FIN; in turns where counts are reduced. */
function casesOf(
  { statement, cold, lasting }: Pick<Case, 'statement' | 'cold' | 'lasting'>,
  placesOf: (direction: Direction) => readonly Place[],
  nth: number,
): Case[] {
  return DIRECTIONS.flatMap((direction) =>
    placesOf(direction)
      .filter((_, place) => place % nth === 0)
      .flatMap((at, place) =>
        CUTS.filter((_, cut) => isFullProof || cut === place % 2).map(
          (how): Case => ({ statement, direction, at, how, cold, lasting }),
        ),
      ),
  )
}

describe('a connection that is cut', () => {
  for (const statement of ['begin', 'end'] as const) {
    for (const cold of [false, true]) {
      const connection = cold ? 'a connection that is being made for it' : 'an open connection'
      const nth = isFullProof || !cold ? 1 : 3
      const cases = async (lasting: boolean): Promise<{ readonly size: Sizes; readonly cases: readonly Case[] }> => {
        const size = await measure(database.url, statement, cold)
        const places = (direction: Direction) => messagePlaces(size[direction].messages)
        return { size, cases: casesOf({ statement, cold, lasting }, places, nth) }
      }

      it(`at a message of ${statement}, on ${connection}, leaves the outcome known: the same ids are sent again`, async () => {
        const { size, cases: all } = await cases(false)
        const runs = await runAll(database.url, all, LONG)
        assert.equal(runs.filter(({ fired }) => fired).length, all.length, 'every case was a cut')
        recordProof(PROOF, `${statement}, ${connection}, cut at its messages`, { cuts: all.length, ...size })
        judgeDelays(`${statement}, ${connection}`, runs)
      })

      it(`at a message of ${statement}, on ${connection}, for longer than the deadline, ends in one fault, and nothing stays held or charged`, async () => {
        const { cases: all } = await cases(true)
        const runs = await runAll(database.url, all, SHORT)
        const faults = runs.filter(({ failed }) => failed).length
        // Only a cut behind the last byte of the answer comes too late to be noticed.
        assert.ok(faults >= all.length - CUTS.length, `${faults} of ${all.length} ended in a fault`)
        recordProof(PROOF, `${statement}, ${connection}, cut at its messages until after the deadline`, {
          cuts: all.length,
          faults,
        })
        judgeDelays(`${statement}, ${connection}, cut until after the deadline`, runs)
      })
    }

    it(`at a byte of ${statement} leaves the outcome known`, async () => {
      const size = await measure(database.url, statement, false)
      const places = (direction: Direction) => bytePlaces(size[direction].bytes)
      const all = casesOf({ statement, cold: false, lasting: false }, places, isFullProof ? 1 : 101)
      const runs = await runAll(database.url, all, LONG)
      const cuts = runs.filter(({ fired }) => fired).length
      assert.ok(cuts >= all.length - CUTS.length * VARYING_BYTES, `${cuts} of ${all.length} cases were a cut`)
      recordProof(PROOF, `${statement}, cut at its bytes`, { cuts, ...size })
      judgeDelays(`${statement}, cut at its bytes`, runs)
    })
  }

  it('happened before and after PostgreSQL had carried it out, and every promise of the ledger holds', async () => {
    const seen = await endsOfFailedCalls()
    for (const [what, times] of Object.entries(seen)) assert.ok(times > 0, `${what} never happened`)
    assert.deepEqual(await verifyLedger(observers.rest), [])
    recordProof(PROOF, 'calls whose callers got a fault', seen)
  })
})

function judgeDelays(title: string, runs: readonly Run[]): void {
  const delays = runs.map(({ lateMs }) => lateMs)
  judge(PROOF, `${title}: an answer or a fault after its deadline`, { unit: 'ms', atMost: SLACK_MS }, delays)
}

/** Every "always" has a "sometimes": each of the ways out must have been taken. */
async function endsOfFailedCalls(): Promise<Record<string, number>> {
  const { rows } = await observers.rest.query<Record<string, number>>(`
    select
      (count(*) filter (where outcome = 'voided' and credential_id is null))::integer as voided_before_any_hold,
      (count(*) filter (where outcome = 'voided' and credential_id is not null and operation = 'probe' and value = 0))::integer as holds_voided,
      (count(*) filter (where outcome = 'voided' and overrun > 0))::integer as voided_at_our_loss,
      (select count(*) from entries where kind = 'forgiveness')::integer as given_back
    from charges`)
  return rows[0] ?? {}
}
