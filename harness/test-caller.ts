import { TIERS } from '../server/src/catalogue/tiers.ts'
import type { Caller } from '../server/src/identity/caller.ts'
import { systemClock } from '../server/src/kernel/clock.ts'
import { createIds } from '../server/src/kernel/ids.ts'
import { rational } from '../server/src/kernel/rational.ts'

const ids = createIds({ clock: systemClock })

/** A key of the free tier that may do everything, for tests that ask no PostgreSQL who calls. */
export function testCaller(changes: Partial<Caller> = {}): Caller {
  return {
    workspaceId: ids.next(),
    accountId: ids.next(),
    credentialId: ids.next(),
    mode: 'live',
    tier: 'free',
    limits: TIERS.free,
    scopes: null,
    networks: null,
    onDisconnect: 'cancel',
    holding: 'growing',
    tags: [],
    ceilings: [],
    allowances: [],
    budgetsOfCalls: null,
    budget: null,
    expiresAtMs: null,
    isTicket: false,
    token: null,
    priceMultiplier: rational(1n),
    ...changes,
  }
}
