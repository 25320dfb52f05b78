import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { SalesNow } from '../../http/routes/sales.ts'
import { type Health, statusRoutes } from './status.ts'

const snapshot = { contentHash: 'a'.repeat(64), bytes: Buffer.from('{}'), observedAt: new Date('2026-11-17T01:00:00Z') }
const watch = { sinceMs: 0, troubles: () => [{ fromMs: 0, untilMs: 5_000 }], look: () => {} }
const FINE: Health = {
  readiness: () => [],
  roles: ['site', 'gateway', 'agent', 'worker'],
  hasContract: true,
  sales: () => ({ freshness: 'fresh', snapshot }),
  upstreams: () => [{ name: 'openai', isAsked: true }],
  watch,
}

async function told(health: Partial<Health>): Promise<string> {
  const shell = {
    page: ({ main }: { readonly main: object }) => ({ status: 200, headers: {}, body: String(main) }),
    text: ({ body }: { readonly body: string }) => ({ status: 200, headers: {}, body }),
  }
  const [route] = statusRoutes({ shell, clock: { nowMs: () => 0 }, health: { ...FINE, ...health } })
  const request = { params: {}, query: new URLSearchParams() }
  return String(
    Object(await Reflect.apply(route?.answer ?? assert.fail('there is no route'), undefined, [request])).body,
  )
}

describe('the status page tells what its process can know', () => {
  it('of calls only where it takes some', async () => {
    assert.match(await told({}), /Calls are accepted, held for and settled/)
    const alone = await told({ roles: ['site'] })
    assert.doesNotMatch(alone, /Calls are taken/)
    assert.match(alone, /The ledger answers this process, which takes no calls/)
    const down = await told({ roles: ['site'], readiness: () => ['database'] })
    assert.match(
      down,
      /The ledger does not answer this process\. Whether it answers those that take calls is not known/,
    )
    assert.doesNotMatch(down, /Paid calls were refused|billing_dependency_timeout/)
    assert.match(await told({ readiness: () => ['database'] }), /billing_dependency_timeout/)
  })

  it('of each provider by its name', async () => {
    const shown = await told({
      upstreams: () => [
        { name: 'anthropic', isAsked: false },
        { name: 'openai', isAsked: true },
      ],
    })
    assert.match(shown, /anthropic<span class="fb-sub">Provider\. It kept failing.*Not asked<\/span>/)
    assert.match(shown, /openai<span class="fb-sub">Provider<\/span>/)
    assert.match(shown, /In trouble: anthropic\./)
    assert.match(await told({ upstreams: () => [] }), /This process has called none yet/)
  })

  it('that no worker is seen only where the observation is too old', async () => {
    const stale = (reason: string) => (): SalesNow => ({ freshness: 'stale', snapshot, reason })
    assert.match(await told({ sales: stale('observation_too_old') }), /Not seen<\/span>/)
    const unread = await told({ sales: stale('verified_sales_source_unavailable') })
    assert.doesNotMatch(unread, /Not seen/)
    assert.match(unread, /Not known<\/span>/)
  })
})
