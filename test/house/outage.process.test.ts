import assert from 'node:assert/strict'
import { Agent, request as httpRequest } from 'node:http'
import { after, describe, it } from 'node:test'
import { request } from 'undici'
import { startGateway } from '../../harness/gateways.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'

const CANARY = 'canary4e79c1'
const CALLERS = 8
/** What the harness keeps of a program's output. */
const OUTPUT_LIMIT = 256 * 1024

describe('a whole server', () => {
  it('lives through an outage of PostgreSQL, stops under load without failing a request, and prints no secret', async () => {
    const postgres = await startPostgres({ password: `${CANARY}-password` })
    after(() => postgres.remove())
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    const gateway = await startGateway({ databaseUrl: postgres.url() })
    after(() => gateway.kill())
    const isReady = async () => (await request(`${gateway.url}/readyz`)).statusCode === 200
    const isUnready = async () => (await request(`${gateway.url}/readyz`)).statusCode === 503

    await until(isReady, PATIENCE_MS, 'readiness')
    await sendSecrets(gateway.url)
    await postgres.kill()
    await sendSecrets(gateway.url)
    await until(isUnready, PATIENCE_MS, 'unreadiness')
    await sendSecrets(gateway.url)
    await sendSecrets(gateway.adminUrl)
    assert.equal((await request(`${gateway.url}/livez`)).statusCode, 200)
    await postgres.start()
    await until(isReady, PATIENCE_MS, 'readiness after the outage')
    await sendSecrets(gateway.url)

    const load = startLoad(gateway.url)
    await until(() => load.answered() > 10 * CALLERS, PATIENCE_MS, 'a load')
    assert.deepEqual(await gateway.stop(), { code: 0, signal: null })
    assert.deepEqual(await load.failures, [])

    const output = gateway.output()
    assert.ok(output.length < OUTPUT_LIMIT, 'the whole output was kept')
    assert.match(output, /the change log could not be read[\s\S]*the change log is read again[\s\S]*"msg":"stopped"/)
    assert.ok(!output.toLowerCase().includes(CANARY), output)
  })
})

/** A credential in every place where callers put one, some of them by mistake. */
async function sendSecrets(url: string): Promise<void> {
  const places: readonly (readonly [path: string, options: Parameters<typeof request>[1]])[] = [
    ['/v1/models', { headers: { authorization: `Bearer ${CANARY}` } }],
    ['/v1/models', { headers: { authorization: `Bearer fb_live_${CANARY}` } }],
    ['/v1/models', { headers: { authorization: `Basic ${CANARY}` } }],
    ['/v1/messages', { headers: { 'x-api-key': CANARY } }],
    [`/v1beta/models/${CANARY}?key=${CANARY}`, {}],
    [`/readyz?key=${CANARY}`, { headers: { authorization: `Bearer ${CANARY}` } }],
    ['/v1/%zz', { headers: { 'x-request-id': CANARY } }],
    [
      '/v1/chat/completions',
      { method: 'POST', headers: { 'content-type': 'application/json' }, body: `{"key":"${CANARY}"` },
    ],
  ]
  for (const [path, options] of places) {
    const { statusCode, headers, body } = await request(url + path, options)
    const answer = JSON.stringify(headers) + (await body.text())
    assert.ok(statusCode >= 200 && !answer.includes(CANARY), answer)
  }
}

/** Callers that keep their connections and ask until nobody takes a new one any more. */
function startLoad(url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS })
  const failures: string[] = []
  let answered = 0
  const caller = async () => {
    for (;;) {
      const outcome = await ask(`${url}/livez`, agent)
      if (outcome === 'not accepted') return
      if (outcome === 'answered') answered += 1
      else failures.push(outcome)
    }
  }
  const load = async (): Promise<readonly string[]> => {
    await Promise.all(Array.from({ length: CALLERS }, caller))
    agent.destroy()
    return failures
  }
  return { answered: () => answered, failures: load() }
}

function ask(url: string, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${CANARY}` }
    const asked = httpRequest(url, { agent, headers }, (response) => {
      response.on('error', (error) => resolve(String(error)))
      response.on('end', () => resolve(response.statusCode === 200 ? 'answered' : `status ${response.statusCode}`))
      response.resume()
    })
    asked.on('error', (error) => {
      const refused = 'code' in error && error.code === 'ECONNREFUSED'
      // A new connection that was reset before it carried anything waited in the system's queue, and was not accepted.
      resolve(refused || !asked.reusedSocket ? 'not accepted' : String(error))
    })
    asked.end()
  })
}
