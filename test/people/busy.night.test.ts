import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { pin } from '../../bench/load/cores.ts'
import type { LoadReport } from '../../bench/load/load.ts'
import { startStage } from '../../bench/load/stage.ts'
import { sound } from '../../bench/load/window.ts'
import { measure } from '../../harness/figures.ts'
import { freePort } from '../../harness/free-port.ts'
import { startGateway } from '../../harness/gateways.ts'
import { count } from '../../harness/proof.ts'
import { createVisitor, freshEmail, hiddenIn } from './visitor.ts'

const PROOF = 'people-busy'
const SIGN_INS_AT_ONCE = 200
const WINDOW = {
  connections: 20,
  rate: count({ full: 100, reduced: 20 }),
  warmUpMs: count({ full: 1_000, reduced: 200 }),
  measureMs: count({ full: 10_000, reduced: 1_000 }),
}

const stage = await startStage({ callers: 100, env: { FAREBOX_ROLES: 'gateway,worker' } })
after(stage.stop)

const at = `127.0.0.1:${await freePort()}`
const site = await startGateway({
  databaseUrl: stage.postgres.url(),
  env: {
    FAREBOX_ROLES: 'site',
    FAREBOX_LISTEN_SITE: at,
    FAREBOX_HTTP_SITE_URL: `http://${at}`,
    FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1/32',
    FAREBOX_SECRETS_MASTER_KEY: stage.masterKey.reveal(),
    FAREBOX_LOG_LEVEL: 'warn',
  },
})
pin('others', site.pid)
after(() => site.stop())

type Flood = { readonly stop: () => Promise<ReadonlyMap<number, number>> }

/** So many people sign in again and again, each with a form of their own. */
async function startFlood(): Promise<Flood> {
  const statuses = new Map<number, number>()
  let isOver = false
  const ready = await Promise.all(
    Array.from({ length: SIGN_INS_AT_ONCE }, async () => {
      const visitor = createVisitor({ url: `http://${at}` })
      return { visitor, hidden: hiddenIn((await visitor.get('/sign-in')).text, '/sign-in') }
    }),
  )
  const flooding = ready.map(async ({ visitor, hidden }) => {
    while (!isOver) {
      const fields = { ...hidden, email: freshEmail('nobody'), password: 'a wrong password' }
      const { status } = await visitor.post('/sign-in', fields)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  })
  return {
    async stop() {
      isOver = true
      await Promise.all(flooding)
      return statuses
    },
  }
}

const perCall = ({ cpuUs, answered }: LoadReport) => (cpuUs.server ?? Number.NaN) / answered
const calls = async () => perCall(sound(await stage.send('ours', WINDOW)))

describe('passwords', () => {
  it('hashed for 200 sign-ins at once by the process of the website leave the CPU of a metered call as it is', async () => {
    await calls()
    await measure(
      PROOF,
      'CPU of a call beside 200 sign-ins, to that without',
      { unit: 'ratio', atMost: 1.1 },
      async () => {
        const alone = [await calls()]
        const flood = await startFlood()
        const beside = await calls()
        const statuses = await flood.stop()
        alone.push(await calls())
        assert.deepEqual(
          [...statuses.keys()].filter((status) => ![400, 429, 503].includes(status)),
          [],
        )
        assert.ok((statuses.get(400) ?? 0) > 0 && (statuses.get(503) ?? 0) > 0, JSON.stringify([...statuses]))
        return (2 * beside) / alone.reduce((sum, one) => sum + one, 0)
      },
    )
  })
})
