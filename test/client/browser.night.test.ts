import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { buildClient } from '../../harness/build-client.ts'
import { startChromium } from '../../harness/chromium.ts'
import { recordProof } from '../../harness/proof.ts'
import { createTcpProxy } from '../../harness/tcp-proxy.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { chargesOf, makeCustomer, startInstallation } from '../acceptance/installation.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'farebox-client-'))
await buildClient(path.join(folder, 'dist'))
const built = readFileSync(path.join(folder, 'dist/index.js'))

/** A page of another origin than the gateway's, with the client beside it. */
const site = createServer((request, response) => {
  if (request.url === '/client.js') response.setHeader('content-type', 'text/javascript').end(built)
  else if (request.url === '/worker.js') response.setHeader('content-type', 'text/javascript').end(WORKER)
  else response.setHeader('content-type', 'text/html').end('<!doctype html><title>A page</title>')
})
await new Promise<void>((resolve) => void site.listen(0, '127.0.0.1', resolve))
const address = site.address()
const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`

const database = await freshDatabase()
const env = { FAREBOX_HTTP_CORS_ORIGINS: origin }
const installation = await startInstallation(database.url, { env })
const { url, pool, sandbox } = installation
const browser = await startChromium()
after(async () => {
  await browser.close()
  await new Promise((resolve) => void site.close(resolve))
  await installation.stop()
  rmSync(folder, { recursive: true })
})

const WORKER = `import { Farebox } from './client.js'
onmessage = async ({ data: [baseUrl, apiKey] }) => {
  const { cost, balanceLeft } = await new Farebox({ baseUrl, apiKey }).call('tag_detail', { tag_name: 'cats' })
  postMessage([cost.usd, balanceLeft.usd])
}`

describe('the client in a browser', () => {
  it('makes calls from a page and from a worker, and reads what they cost', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const page = await browser.newPage()
    await page.goto(origin)
    const onPage = await page.evaluate(`(async () => {
      const { Farebox, sumUsd } = await import('/client.js')
      const farebox = new Farebox({ baseUrl: ${JSON.stringify(url)}, apiKey: ${JSON.stringify(secret)} })
      const { cost, balanceLeft, requestId, limits } = await farebox.call('tag_detail', { tag_name: 'cats' })
      const error = await farebox.call('tag_detail', { tag_name: 'cats' }, { maxCostUsd: '0.000001' }).catch((one) => one)
      return [cost.usd, balanceLeft.usd, requestId.length, limits.requests.limit, error.code, error.needed.usd]
    })()`)
    const limit = 1_000_000
    assert.deepEqual(onPage, ['0.001450000', '9.998550000', 36, limit, 'cost_cap_exceeded', '0.001450000'])
    const inWorker = await page.evaluate(`new Promise((resolve, reject) => {
      const worker = new Worker('/worker.js', { type: 'module' })
      worker.onmessage = ({ data }) => resolve(data)
      worker.onerror = (event) => reject(new Error(event.message))
      worker.postMessage(${JSON.stringify([url, secret])})
    })`)
    assert.deepEqual(inWorker, ['0.001450000', '9.997100000'])
    assert.equal((await chargesOf(pool, accountId)).size, 2)
    recordProof('client-browser', 'a page and a worker', { browser: browser.version(), calls: 2 })
    await page.close()
  })

  it('CLIENT-2 looks up a call whose connection broke, as everywhere', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const proxy = await createTcpProxy({ target: { port: Number(new URL(url).port) } })
    const page = await browser.newPage()
    await page.goto(origin)
    const running = page.evaluate(`(async () => {
      const { Farebox } = await import('/client.js')
      const farebox = new Farebox({ baseUrl: ${JSON.stringify(proxy.url(url))}, apiKey: ${JSON.stringify(secret)} })
      const came = await farebox.call('tag_detail', { tag_name: 'sandbox:delay=3000' }).catch((one) => one)
      return [came.code ?? 'answered', came.cost?.usd]
    })()`)
    await until(
      async () => (await sandbox.journal()).some(({ query }) => query.includes('delay')),
      PATIENCE_MS,
      'the call',
    )
    proxy.cut('reset')
    assert.deepEqual(await running, ['idempotency_completed', '0.001450000'])
    assert.equal((await chargesOf(pool, accountId)).size, 1)
    await page.close()
    await proxy.close()
  })
})
