import assert from 'node:assert/strict'
import http from 'node:http'
import { after, describe, it } from 'node:test'
import { pin } from '../../bench/load/cores.ts'
import type { LoadReport } from '../../bench/load/load.ts'
import { startStage } from '../../bench/load/stage.ts'
import { sound } from '../../bench/load/window.ts'
import { measure } from '../../harness/figures.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { startSiteOf } from './shown-site.ts'

const PROOF = 'site-busy'
const PAGES_A_SECOND = count({ full: 500, reduced: 50 })
const WINDOW = {
  connections: 20,
  rate: count({ full: 100, reduced: 20 }),
  warmUpMs: count({ full: 1_000, reduced: 200 }),
  measureMs: count({ full: 10_000, reduced: 1_000 }),
}
const PATHS = [
  ...['/', '/catalogue', '/catalogue/chat_completions', '/models', '/reference', '/reference/chat_completions'],
  ...['/search?q=hold', '/search?q=what+does+a+streamed+call+of+a+model+cost'],
]

const stage = await startStage({ callers: 100, env: { FAREBOX_ROLES: 'gateway,worker' } })
after(stage.stop)
const site = await startSiteOf(stage.postgres.url(), stage)
pin('others', site.pid)
after(() => site.stop())

/** Reads one page after the other, so many a second, whatever becomes of those before. */
function startReaders() {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 50 })
  const statuses = new Map<number, number>()
  const startedAtMs = performance.now()
  let asked = 0
  const count = (status: number) => statuses.set(status, (statuses.get(status) ?? 0) + 1)

  function read(path: string): void {
    http
      .get(site.siteUrl + path, { agent, headers: { 'accept-encoding': 'gzip' } }, (response) => {
        response.resume().on('end', () => count(response.statusCode ?? 0))
      })
      .on('error', () => count(0))
  }

  const timer = setInterval(() => {
    const due = ((performance.now() - startedAtMs) / 1_000) * PAGES_A_SECOND
    for (; asked < due; asked += 1) read(PATHS[asked % PATHS.length] ?? '/')
  }, 5)
  return {
    stop() {
      clearInterval(timer)
      const seconds = (performance.now() - startedAtMs) / 1_000
      agent.destroy()
      return { statuses: new Map(statuses), pagesASecond: (statuses.get(200) ?? 0) / seconds }
    },
  }
}

const perCall = ({ cpuUs, answered }: LoadReport) => (cpuUs.server ?? Number.NaN) / answered
const calls = async () => perCall(sound(await stage.send('ours', WINDOW)))

describe('pages', () => {
  it('that a process of their own serves by the hundred a second leave the CPU of a metered call as it is', async () => {
    await calls()
    let pagesASecond = 0
    await measure(
      PROOF,
      'CPU of a call beside readers of pages, to that without',
      { unit: 'ratio', atMost: 1.1 },
      async () => {
        const alone = [await calls()]
        const readers = startReaders()
        const beside = await calls()
        const read = readers.stop()
        alone.push(await calls())
        assert.deepEqual([...read.statuses.keys()], [200])
        pagesASecond = read.pagesASecond
        return (2 * beside) / alone.reduce((sum, one) => sum + one, 0)
      },
    )
    recordProof(PROOF, 'pages read a second', { wanted: PAGES_A_SECOND, read: Math.round(pagesASecond) })
  })
})
