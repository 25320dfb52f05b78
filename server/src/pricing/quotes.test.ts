import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TIERS } from '../catalogue/tiers.ts'
import type { Caller } from '../identity/caller.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { perMillion } from '../kernel/money.ts'
import { rational } from '../kernel/rational.ts'
import { Secret } from '../kernel/secret.ts'
import { createQuotes } from './quotes.ts'
import { costOf, type Terms } from './terms.ts'

const ids = createIds({ clock: systemClock })
const caller: Caller = {
  workspaceId: ids.next(),
  accountId: ids.next(),
  credentialId: ids.next(),
  mode: 'test',
  tier: 'free',
  limits: TIERS.free,
  scopes: null,
  networks: null,
  allowances: [],
  token: null,
  priceMultiplier: rational(1n),
}

const termsAt = (version: string, usd: string): Terms => {
  const price = perMillion(usd)
  return { version, rates: [{ unit: 'token', price, published: price, providerCost: null }] }
}

describe('what a call with a quote is held for', () => {
  const masterKeys = [new Secret(Buffer.alloc(32, 7).toString('base64'))]
  const quotes = createQuotes({ time: { nowMs: () => 1_000_000 }, masterKeys })
  const asked = { caller, operation: { id: 'rerank' }, digest: 'digest' }

  for (const [change, today] of [
    ['risen', '5'],
    ['fallen', '0.1'],
  ] as const)
    it(`has the quoted price of a unit, and not only the quoted maximum, when prices have ${change}`, () => {
      const plan = { terms: termsAt('1', '0.5'), most: [1_000n], expected: [10n], isExact: false }
      const { quote_id } = quotes.issue(asked, plan)
      const held = quotes.redeem(String(quote_id), asked).held(termsAt('2', today))
      assert.deepEqual([held.most, held.mostCounts, held.terms.version], [500_000n, [1_000n], '1'])
      // A call that uses far less than the maximum would not meet it.
      assert.equal(costOf(held.terms, [10n]), 5_000n)
    })
})
