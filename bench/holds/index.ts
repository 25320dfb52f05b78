import type pg from 'pg'
import { startGateway } from '../../harness/gateways.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { startSandbox } from '../../harness/sandbox.ts'
import { bindSandbox, CONVERSATION_SLOTS, makeMasterKey, SANDBOX_LIMITS, SANDBOX_PRICE } from '../../harness/seed.ts'
import { TIERS } from '../../server/src/catalogue/tiers.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import { treeCpuMicroseconds } from '../cpu.ts'
import { estimated } from '../paired.ts'
import { answersOf, ask, type Holding, ids, makeCaller, sendAll } from './traffic.ts'

const AT_ONCE = 20
const MONEY = '1'
const PLENTY = '1000'
/** A model that costs what the dear ones do, and one that costs what most do. */
const PRICES = {
  'holds/dear': { input: '3', output: '15' },
  'holds/plain': { input: SANDBOX_PRICE.input, output: SANDBOX_PRICE.output },
} as const
type Model = keyof typeof PRICES
const FULL = { rounds: 9, calls: { short: 1_000, long: 300 }, seeds: 5 }
const REDUCED = { rounds: 1, calls: { short: 20, long: 20 }, seeds: 1 }
/** Within the first slice, and far beyond it. */
const LENGTHS = { short: 200, long: 4_000 } as const
type Length = keyof typeof LENGTHS
const UNPACED = ''
const HOLDINGS: readonly Holding[] = ['full', 'growing']

type World = { readonly url: string; readonly pool: pg.Pool; readonly postgresPid: number }

/**
 * What holds that grow admit of traffic like that of coding agents, beside an oracle that knows every answer before it is written and beside
 * holds in full; and what they cost PostgreSQL.
 */
export const run: Benchmark = async (progress, { reduced, rounds: wanted }) => {
  const { rounds, calls, seeds } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  const postgres = await startPostgres()
  await migrate({ url: new Secret(postgres.url()), log: silentLog })
  const sandbox = await startSandbox()
  const pools = createPools({ url: new Secret(postgres.url()), log: silentLog })
  const pool = pools.rest
  const masterKey = makeMasterKey()
  try {
    await prepare(pool, masterKey, sandbox.url)
    const gateway = await startGateway({
      databaseUrl: postgres.url(),
      env: { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), FAREBOX_LOG_LEVEL: 'warn' },
    })
    try {
      const world = { url: gateway.url, pool, postgresPid: postgres.pid() }
      const shares = await admitted(world, seeds, progress)
      const costs = await costsOf(world, { rounds, calls }, progress)
      return [...shares, ...costs]
    } finally {
      await gateway.stop()
    }
  } finally {
    await pools.close()
    await sandbox.stop()
    await postgres.remove()
  }
}

async function prepare(pool: pg.Pool, masterKey: Secret, sandboxUrl: string): Promise<void> {
  await bindSandbox({ pool, masterKey, sandboxUrl })
  for (const [id, price] of Object.entries(PRICES)) {
    await saveModel({ pool }, { id, ...SANDBOX_LIMITS })
    await setModelPrice({ pool }, { model: id, ...price })
    const profile = { abort: 'stops', output: 'seen', tokenBytes: 3 } as const
    const route = {
      model: id,
      slot: CONVERSATION_SLOTS.openai,
      protocol: 'openai',
      upstreamModel: 'sandbox/text',
    } as const
    await saveRoute({ pool, ids }, { ...route, profile })
  }
}

/** Of what the oracle would admit, how much was answered whole. It admits as long as what is used altogether fits. */
async function admitted(world: World, seeds: number, progress: (line: string) => void): Promise<Metric[]> {
  const metrics: Metric[] = []
  for (const [title, model, limit] of [
    ['dear_usd', 'holds/dear', 'money'],
    ['plain_usd', 'holds/plain', 'money'],
    ['free_key', 'holds/plain', 'tokens'],
  ] as const) {
    const shares: Record<Holding, number[]> = { full: [], growing: [] }
    for (let seed = 1; seed <= seeds; seed += 1) {
      const answers = await oracle(world, model, limit, seed)
      for (const holding of HOLDINGS) {
        const isOfMoney = limit === 'money'
        const caller = await makeCaller(world.pool, isOfMoney ? MONEY : PLENTY, isOfMoney ? 'unlimited' : 'free')
        const atOnce = isOfMoney ? AT_ONCE : TIERS.free.concurrency
        const heard = await sendAll(answers, atOnce, (answer) =>
          ask(caller, { url: world.url, model, answer, holding }),
        )
        shares[holding].push(heard.whole / answers.length)
        progress(
          `${title}, seed ${seed}, ${holding}: ${heard.whole} whole, ${heard.cut} cut, ${heard.refused} refused of ${answers.length}`,
        )
      }
    }
    metrics.push(
      ...estimated(`admitted_share_${title}`, shares.growing, 'of oracle', {
        baseline: median(shares.full),
        // Of a dear one, a dollar carries three times as many calls as run at once, and the last of them find no slice free.
        ...(title !== 'dear_usd' && { goal: '>= 0.95' }),
      }),
      metric(`admitted_share_${title}_full`, median(shares.full), 'of oracle'),
    )
  }
  return metrics
}

/** Answers whose cost, or tokens, fit altogether, as each was charged to somebody with plenty. */
async function oracle({ url, pool }: World, model: Model, limit: 'money' | 'tokens', seed: number) {
  const caller = await makeCaller(pool, PLENTY, 'unlimited')
  const answers = answersOf(seed, limit === 'tokens' ? TIERS.free.requestsPerMinute : 2_000)
  const one = async (answer: number) => {
    await ask(caller, { url, model, answer, holding: 'full' }, UNPACED)
    const { rows } = await pool.query<{ cost: bigint; tokens: bigint }>(
      'select amount as cost, input_tokens + output_tokens as tokens from charges where account_id = $1 order by ended_at desc limit 1',
      [caller.accountId],
    )
    return rows[0] ?? { cost: 0n, tokens: 0n }
  }
  // What a call costs is what it has before its output, and so much for each token of that.
  const [none, some] = [await one(100), await one(1_100)]
  const usedBy = (answer: number) => {
    const of = (what: 'cost' | 'tokens') =>
      Number(none[what]) + ((Number(some[what]) - Number(none[what])) / 1_000) * (answer - 100)
    return limit === 'money' ? of('cost') : of('tokens')
  }
  const ceiling = limit === 'money' ? Number(MONEY) * 1e9 : TIERS.free.tokensPerMinute
  let used = 0
  return answers.filter((answer) => {
    used += usedBy(answer)
    return used <= ceiling
  })
}

type Round = Readonly<Record<Holding, number>>

/** CPU of PostgreSQL for a call, by how long its answer is and how it is held for, in turns. */
async function costsOf(
  { url, pool, postgresPid }: World,
  { rounds, calls }: { readonly rounds: number; readonly calls: Readonly<Record<Length, number>> },
  progress: (line: string) => void,
): Promise<Metric[]> {
  const caller = await makeCaller(pool, PLENTY, 'unlimited')
  const measure = async (holding: Holding, length: Length) => {
    const [answer, times] = [LENGTHS[length], calls[length]]
    const beforeUs = treeCpuMicroseconds(postgresPid)
    const send = () => ask(caller, { url, model: 'holds/plain', answer, holding }, UNPACED)
    const { whole } = await sendAll(Array.from({ length: times }), AT_ONCE, send)
    if (whole < times) throw new Error('not every call was answered whole')
    return (treeCpuMicroseconds(postgresPid) - beforeUs) / times
  }
  const metrics: Metric[] = []
  for (const title of ['short', 'long'] as const) {
    for (const holding of HOLDINGS) await measure(holding, title)
    const measured: Round[] = []
    for (let at = 1; at <= rounds; at += 1) {
      const round = { full: 0, growing: 0 }
      for (const holding of at % 2 === 0 ? HOLDINGS : HOLDINGS.toReversed())
        round[holding] = await measure(holding, title)
      measured.push(round)
      progress(
        `${title}, round ${at} of ${rounds}: full ${round.full.toFixed(0)} µs, growing ${round.growing.toFixed(0)} µs`,
      )
    }
    metrics.push(
      ...estimated(
        `postgres_ratio_${title}`,
        measured.map(({ full, growing }) => growing / full),
        'x',
        {
          baseline: median(measured.map(({ full }) => full)),
          goal: title === 'short' ? '<= 1.03' : '<= 1.1',
        },
      ),
    )
  }
  return metrics
}
