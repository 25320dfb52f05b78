import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { judge } from '../../../harness/figures.ts'
import { count, recordProof } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { until } from '../../../harness/until.ts'
import { ask, type Customer, codeOf, makeCustomer, startInstallation } from '../installation.ts'
import { follow, LINKS, linkAccount } from './linking.ts'
import { expire, platformOf } from './sandbox-platform.ts'

const PROOF = 'links-refresh-death'
/** Sessions whose refresher dies, all at once. */
const SESSIONS = count({ full: 50, reduced: 6 })
/** Less than we wait for an answer, and more than it takes us to kill. */
const ANSWER_MS = 9_000
/** Half a minute without a word, and what a loaded machine adds to it. */
const LOST_WITHIN_MS = 35_000

const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  processes: 2,
  env: { FAREBOX_LINKS_OFFLINE_ACCESS: 'true' },
})
const { gateways, pool, sandbox } = installation
const [mortal, survivor] = gateways
assert.ok(mortal !== undefined && survivor !== undefined)
const platform = platformOf(sandbox.url)
after(installation.stop)

async function linked(user: string): Promise<Customer> {
  const customer = await makeCustomer(pool)
  await linkAccount(survivor?.url ?? '', customer.secret, user)
  return customer
}

async function stateOf(secret: string): Promise<string> {
  const [link] = (await ask(survivor?.url ?? '', secret, LINKS)).json.data as Record<string, unknown>[]
  return `${link?.status} ${link?.reason}`
}

describe("a process that is killed between the platform's answer and keeping it", () => {
  it('LINK-6 takes its sessions with it: no refresh token is used a second time, and their users are asked to link anew', async () => {
    const customers = await Promise.all(Array.from({ length: SESSIONS }, (_, number) => linked(`mortal_${number}`)))
    await platform.turn({ token_delay_ms: ANSWER_MS })
    await expire(
      pool,
      sandbox.url,
      customers.map(({ keyId }) => keyId),
    )
    const dying = customers.map(({ secret }) => follow(mortal.url, secret).catch(() => 'cut'))
    await until(async () => (await platform.summary()).refreshes === SESSIONS, ANSWER_MS - 1_000, 'all refreshes')
    await mortal.kill()
    const killedAtMs = performance.now()
    assert.deepEqual([...new Set(await Promise.all(dying))], ['cut'])
    await platform.turn({ token_delay_ms: 0, follow_limit: 1_000_000 })

    // Writes go on and on through the other one, from the first moment.
    const codes = new Map<unknown, number>()
    const lostAfterMs = await Promise.all(
      customers.map(async ({ secret }) => {
        for (;;) {
          const told = await follow(survivor.url, secret)
          assert.notEqual(told.status, 200)
          codes.set(codeOf(told), (codes.get(codeOf(told)) ?? 0) + 1)
          if (codeOf(told) === 'link_required') return performance.now() - killedAtMs
          assert.ok(performance.now() - killedAtMs < 4 * LOST_WITHIN_MS, told.text)
        }
      }),
    )
    assert.deepEqual([...codes.keys()].toSorted(), ['link_required', 'upstream_transport'])
    judge(PROOF, 'from the kill to the loss of a session', { unit: 'ms', atMost: LOST_WITHIN_MS }, lostAfterMs)
    assert.deepEqual(
      [...new Set(await Promise.all(customers.map(({ secret }) => stateOf(secret))))],
      ['needs_link lost'],
    )
    const { refreshes, refresh_reuses, failed_refreshes, follows } = await platform.summary()
    assert.deepEqual([refreshes, refresh_reuses, failed_refreshes, follows], [SESSIONS, 0, 0, 0])

    const [first] = customers
    await linkAccount(survivor.url, first?.secret ?? '', 'mortal_0')
    assert.equal((await follow(survivor.url, first?.secret ?? '')).status, 200)
    recordProof(PROOF, 'killed between the answer and the store', {
      ...{ sessions: SESSIONS, refreshes, refresh_reuses, needs_link: lostAfterMs.length },
      ...{ writes_meanwhile: Object.fromEntries(codes), lost_after_ms_at_most: Math.round(Math.max(...lostAfterMs)) },
    })
  })
})
