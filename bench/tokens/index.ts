import { type Benchmark, type Metric, median, metric } from '../bench.ts'
import { startStage } from '../load/stage.ts'
import { perRequest, SETTLE_MS, sound } from '../load/window.ts'
import { estimated } from '../paired.ts'
import { AUDIENCE, makeGrants } from './grants.ts'

const CALLERS = 1_000
const CONNECTIONS = 50
const FULL = { rounds: 15, measureMs: 4_000, warmUps: 12, warmUpMs: 5_000 }
const REDUCED = { rounds: 2, measureMs: 500, warmUps: 1, warmUpMs: 500 }

type By = 'key' | 'token'
type Round = Readonly<Record<By, { readonly gatewayUs: number; readonly postgresUs: number }>>

/**
 * What a metered call costs by an access token, over the same call by a key: the same workspaces, the same gateway, one window after
 * the other, first the one and then the other in turn.
 */
export const run: Benchmark = async (progress, { reduced, rounds: wanted }) => {
  const { rounds, measureMs, warmUps, warmUpMs } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  const stage = await startStage({ callers: CALLERS, env: { FAREBOX_HTTP_PUBLIC_URL: AUDIENCE } })
  const tokensFile = `${stage.secretsFile}-tokens`
  try {
    await makeGrants(stage.bulk, tokensFile)
    const send = (by: By, window: { readonly warmUpMs: number; readonly measureMs: number }) => {
      const secretsFile = by === 'key' ? stage.secretsFile : tokensFile
      return stage.send('ours', { connections: CONNECTIONS, secretsFile, ...window })
    }
    for (let at = 0; at < warmUps; at += 1)
      for (const by of ['key', 'token'] as const) await send(by, { warmUpMs: 100, measureMs: warmUpMs })
    const measured: Round[] = []
    for (let at = 1; at <= rounds; at += 1) {
      const costs = new Map<By, Round[By]>()
      for (const by of at % 2 === 0 ? (['key', 'token'] as const) : (['token', 'key'] as const)) {
        const report = sound(await send(by, { warmUpMs: SETTLE_MS, measureMs }))
        costs.set(by, { gatewayUs: perRequest(report, 'server'), postgresUs: perRequest(report, 'postgres') })
      }
      const [key, token] = [costs.get('key'), costs.get('token')]
      if (key === undefined || token === undefined) throw new Error('a window is missing')
      measured.push({ key, token })
      progress(`round ${at} of ${rounds}: by key ${summary(key)}, by token ${summary(token)}`)
    }
    return metricsOf(measured)
  } finally {
    await stage.stop()
  }
}

function metricsOf(rounds: readonly Round[]): Metric[] {
  const middle = (by: By, what: keyof Round[By]) => median(rounds.map((round) => round[by][what]))
  const ratios = (what: keyof Round[By]) => rounds.map(({ key, token }) => token[what] / key[what])
  return [
    ...estimated('cpu_ratio_token', ratios('gatewayUs'), 'x', {
      baseline: middle('key', 'gatewayUs'),
      goal: '<= 1.03',
    }),
    ...estimated('postgres_ratio_token', ratios('postgresUs'), 'x', { baseline: middle('key', 'postgresUs') }),
    metric('gateway_us_key', middle('key', 'gatewayUs'), 'us'),
    metric('gateway_us_token', middle('token', 'gatewayUs'), 'us'),
  ]
}

function summary({ gatewayUs, postgresUs }: Round[By]): string {
  return `${gatewayUs.toFixed(0)} µs (PostgreSQL ${postgresUs.toFixed(0)})`
}
