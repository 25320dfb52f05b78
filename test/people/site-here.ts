import assert from 'node:assert/strict'
import { createEdge } from '../../server/src/http/edge.ts'
import { createSitePolicy } from '../../server/src/http/policies.ts'
import { assetsFamily } from '../../server/src/http/routes/assets.ts'
import { siteFamily } from '../../server/src/http/routes/site.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { ZERO } from '../../server/src/kernel/money.ts'
import { loadAssets } from '../../server/src/pages/assets.ts'
import { createFaultPage } from '../../server/src/pages/fault-page.ts'
import { createPages } from '../../server/src/pages/page.ts'
import type { Passwords } from '../../server/src/people/passwords.ts'
import { createPeople } from '../../server/src/people/people.ts'
import { createSiteRoutes } from '../../server/src/people-pages/routes.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { createMetrics } from '../../server/src/telemetry/metrics.ts'
import { connect } from '../ledger/world.ts'

/** The website in this process, with passwords that a test can count or hold. It sends no mail. */
export async function startSiteHere(databaseUrl: string, passwords: Passwords) {
  const { pools } = connect(databaseUrl)
  const ids = createIds({ clock: systemClock })
  const assets = loadAssets()
  const pages = createPages({ assets, siteUrl: undefined, referrerPolicy: 'strict-origin' })
  const people = createPeople({
    ...{
      pool: pools.rest,
      ids,
      seal: null,
      passwords,
      sendMail: async () => {},
      credit: async () => {},
      testCredit: async () => {},
    },
    settings: { siteUrl: 'http://127.0.0.1', name: 'Farebox', signUp: 'open', domains: [], credit: ZERO },
  })
  const settings = { isSignUpOpen: true, missing: [], credit: ZERO, issuer: null }
  const routes = createSiteRoutes({ people, pages, siteUrl: undefined, settings, issuer: null })
  const edge = createEdge({
    clock: systemClock,
    ids,
    log: silentLog,
    metrics: createMetrics(),
    policy: createSitePolicy(undefined),
    faultPage: createFaultPage(pages),
    trustedProxies: ['127.0.0.1/32'],
    identify: () => assert.fail('nobody has a key here'),
    readiness: () => [],
    families: [siteFamily(routes), assetsFamily(assets)],
  })
  const { port } = await edge.listen({ host: '127.0.0.1', port: 0 })
  return {
    url: `http://127.0.0.1:${port}`,
    pool: pools.rest,
    async stop() {
      await edge.drain()
      await pools.close()
    },
  }
}
