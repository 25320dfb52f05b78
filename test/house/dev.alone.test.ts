import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, describe, it } from 'node:test'
import { request } from 'undici'
import { startChild } from '../../harness/child.ts'
import { recordProof } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'

const MARK = `DEV_TEST=${process.pid}`

/** The processes that carry our mark in their environment, whoever is their parent now. */
function marked(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      const isZombie = /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
      return /^\d+$/.test(pid) && !isZombie && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(MARK)
    } catch {
      return false
    }
  })
}

async function run(args: readonly string[]) {
  const startedMs = performance.now()
  const env = { ...process.env, DEV_TEST: String(process.pid) }
  const lines: string[] = []
  const dev = startChild('npm', ['run', '--silent', 'dev', '--', ...args], {
    env,
    cwd: ROOT,
    onLine: (line) => lines.push(line),
  })
  while (!dev.hasExited() && !lines.some((line) => /^\{"base_url"|^Ctrl-C/.test(line)))
    await new Promise((resolve) => setTimeout(resolve, 20))
  after(() => dev.kill())
  return { dev, lines, readyMs: performance.now() - startedMs }
}

describe('npm run dev', () => {
  it('prints one JSON line, answers /readyz within 15 s, and leaves nothing running', async () => {
    const { dev, lines, readyMs } = await run(['--json'])
    const printed = lines.filter((line) => !line.startsWith('npm warn'))
    assert.equal(printed.length, 1, dev.output())
    const addresses = JSON.parse(printed[0] ?? '')
    assert.deepEqual(Object.keys(addresses), ['base_url', 'mcp_url', 'site_url', 'admin_url', 'sandbox_url', 'api_key'])
    assert.equal((await request(`${addresses.base_url}/readyz`)).statusCode, 200)
    assert.equal((await request(`${addresses.sandbox_url}/livez`)).statusCode, 200)
    assert.ok(readyMs < 15_000, `${readyMs} ms`)
    assert.ok(marked().length > 3)

    // As a terminal does on Ctrl-C: to the whole foreground group.
    process.kill(-dev.pid, 'SIGINT')
    await dev.exited
    assert.deepEqual(marked(), [])
    recordProof('development-stack', 'ready', { ready_ms: Math.round(readyMs), left_running: 0 })
  })

  it('invites the first call in words', async () => {
    const { dev, lines } = await run([])
    assert.match(lines.join('\n'), /curl http:\/\/127\.0\.0\.1:\d+\/readyz/)
    process.kill(-dev.pid, 'SIGINT')
    await dev.exited
  })
})
