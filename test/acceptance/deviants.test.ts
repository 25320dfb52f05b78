import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startGateway } from '../../harness/gateways.ts'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import { Random } from '../../sandbox/src/random.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { billedNanos } from './deviants/bills.ts'
import type { Kind } from './deviants/draft.ts'
import { createSender, type Heard } from './deviants/exchange.ts'
import { makeRequest, type Request } from './deviants/requests.ts'
import { bindData, DATA_WORDS, saveVendor, VENDORS } from './deviants/vendors.ts'
import { type Call, judge, type Verdict } from './deviants/verdicts.ts'
import { type Customer, makeCustomer, startInstallation } from './installation.ts'
import { chargesOf, eachOf, settled } from './models/streams.ts'

const REQUESTS = count({ full: 20_000, reduced: 600 })
const AT_ONCE = 8
const MONEY = 1_000_000_000_000_000n
/** By then every process has heard of a change. */
const CHANGE_KNOWN_MS = 1_500
const SETTLED_MS = 300_000

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { pool, sandbox, masterKey } = installation
/** One that gives an upstream up as soon as the caller has left. */
const impatient = await startGateway({
  databaseUrl: database.url,
  env: {
    FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
    FAREBOX_LOG_LEVEL: 'warn',
    FAREBOX_HTTP_ABANDONED_STREAM_MS: '0',
  },
})
const sender = createSender()
after(async () => {
  sender.close()
  await impatient.stop()
  await installation.stop()
})

type Done = { readonly request: Request; readonly heard: Heard }

describe('a vendor that deviates from its protocol', () => {
  it('gives no call more than its hold buys where the route knows it, and a bounded loss where it does not', async () => {
    console.log(`seed ${seed}`)
    for (const vendor of VENDORS) await saveVendor(installation, vendor)
    const customer = await makeCustomer(pool, { money: MONEY })
    const done = await sendAll(customer)
    const resolved = await resolveDoubts()
    await settled(pool, null, SETTLED_MS)
    const calls = await callsOf(done)
    const verdicts = calls.map(judge)
    console.log(tableOf(verdicts))
    const refused = tally(done.flatMap(({ heard: { status, code } }) => (status >= 400 ? [`${status} ${code}`] : [])))
    console.log(`${calls.length} of ${REQUESTS} were sent; refused: ${JSON.stringify(refused)}`)

    const broken = verdicts.flatMap((verdict, at) => (verdict.problems.length > 0 ? [told(verdict, calls[at])] : []))
    assert.equal(broken.length, 0, `${broken.length} of ${calls.length}:\n${broken.slice(0, 12).join('\n')}`)
    assert.deepEqual(await verifyLedger(pool), [])

    const wrong = verdicts.filter(({ isRight }) => !isRight)
    // A test that sees no attack through, no loss and no answer shows nothing.
    assert.ok(calls.length > 0.4 * REQUESTS && calls.length < REQUESTS, `${calls.length} of ${REQUESTS} were sent`)
    sometimes(
      wrong.some(({ bill, held }) => bill > held),
      'a bill above its hold',
    )
    recordProof('deviants', 'no call gets more than its hold buys where the profile is right', {
      requests: REQUESTS,
      attacks: done.filter(({ request }) => request.attack !== undefined).length,
      sent: calls.length,
      sent_where_the_profile_is_wrong: wrong.length,
      tasks_whose_creation_could_not_be_read: resolved,
      callers_who_left: done.filter(({ heard }) => heard.end === 'cut').length,
      refused,
      by_kind: tally(done.map(({ request }) => request.kind)),
      worst_bill_by_hold_where_right: worstRatio(verdicts.filter(({ isRight }) => isRight)),
      worst_bill_by_hold_where_wrong: worstRatio(wrong),
      worst_loss_nanos_where_wrong: wrong.reduce((most, { loss }) => (loss > most ? loss : most), 0n),
      counterexamples: broken.length,
    })
  })
})

/** A task whose creation was answered and can't be read waits for an operator, who charges what the vendor bills. How many. */
async function resolveDoubts(): Promise<number> {
  const open = "select from holds where unsettled_at is null and operation <> 'video_synthesis' limit 1"
  await until(async () => (await pool.query(open)).rowCount === 0, SETTLED_MS, 'every call is settled or in doubt')
  const journal = await sandbox.journal()
  const { rows } = await pool.query<{ id: string }>('select id from holds where unsettled_at is not null')
  for (const { id } of rows) {
    const bill = journal.filter(({ request_id }) => request_id === id).reduce((sum, one) => sum + billedNanos(one), 0n)
    await pool.query('select resolve_call(call_id => $1, amount => $2)', [id, bill])
  }
  return rows.length
}

/** All requests, a part of them for each kind of vendors that sell data. */
async function sendAll(customer: Customer): Promise<readonly Done[]> {
  const random = new Random(seed)
  const keys = createKeys(customer)
  const done: Done[] = []
  for (const words of DATA_WORDS) {
    await bindData(installation, words)
    await delay(CHANGE_KNOWN_MS)
    const requests = Array.from({ length: REQUESTS / DATA_WORDS.length }, () => ({
      request: makeRequest(random),
      url: random.chance(0.5) ? installation.url : impatient.url,
    }))
    await eachOf(requests, AT_ONCE, async ({ request, url }) => {
      const heard = await sender.send(url, await keys.next(request.kind), request)
      done.push({ request, heard })
    })
  }
  return done
}

/** Some endpoints have a limit of their own for each key, which nobody here is to meet. */
const USES: Readonly<Partial<Record<Kind, number>>> = { gemini: 25, 'gemini stream': 25, pictures: 25, video: 3 }

function createKeys({ secret }: Customer) {
  const fresh = new Map<number, { secret: string; left: number }>()
  return {
    async next(kind: Kind): Promise<string> {
      const uses = USES[kind]
      if (uses === undefined) return secret
      const known = fresh.get(uses)
      if (known !== undefined && known.left > 0) {
        known.left -= 1
        return known.secret
      }
      const made = await makeCustomer(pool, { money: MONEY })
      fresh.set(uses, { secret: made.secret, left: uses - 1 })
      return made.secret
    },
  }
}

/** Every call that reached a vendor, once the vendor knows how it ended. */
async function callsOf(done: readonly Done[]): Promise<readonly Call[]> {
  const isOver = async () => (await sandbox.journal()).every(({ outcome }) => outcome !== 'open')
  await until(isOver, SETTLED_MS, 'every vendor knows how its calls ended')
  const journal = Map.groupBy(
    (await sandbox.journal()).filter(({ bill }) => bill !== null),
    ({ request_id }) => request_id ?? '',
  )
  const byId = new Map(done.map((one) => [one.heard.id, one]))
  const charges = await chargesOf(pool)
  return [...journal].map(([id, entries]) => {
    const charge = charges.get(id)
    assert.ok(charge !== undefined, `${id} was billed and never charged: ${JSON.stringify(entries)}`)
    return { charge, entries, done: byId.get(id) }
  })
}

function told({ deviant, speech, problems }: Verdict, call: Call | undefined): string {
  const { request, heard } = call?.done ?? {}
  const { path, body } = request ?? {}
  const shown = JSON.stringify({ attack: request?.attack, path, body: body?.slice(0, 600), heard })
  const bills = JSON.stringify(call?.entries.map(({ bill, outcome, directives }) => ({ bill, outcome, directives })))
  return `${deviant} ${speech} ${call?.charge.id}: ${problems.join('; ')}\n    ${shown}\n    ${bills}`
}

const ratioOf = ({ bill, held }: Verdict) => (bill === 0n ? 0 : Number(bill) / Number(held))
const worstRatio = (verdicts: readonly Verdict[]) => Number(Math.max(0, ...verdicts.map(ratioOf)).toFixed(4))

/** The worst of bill by hold, by deviant and protocol; with an exclamation mark where the profile is wrong. */
function tableOf(verdicts: readonly Verdict[]): string {
  const lines = [...Map.groupBy(verdicts, ({ deviant }) => deviant)].map(([deviant, ones]) => {
    const cells = [...Map.groupBy(ones, ({ speech }) => speech)].toSorted().map(([speech, some]) => {
      const isWrong = some.some(({ isRight }) => !isRight)
      return `${speech} ${worstRatio(some)}${isWrong ? '!' : ''} (${some.length})`
    })
    return `  ${deviant || 'honest'}: ${cells.join(', ')}`
  })
  return `worst bill / hold:\n${lines.toSorted().join('\n')}`
}

function tally(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values.toSorted()) counts[value] = (counts[value] ?? 0) + 1
  return counts
}
