import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { createKey } from '../server/src/identity/keys.ts'
import { createWorkspace, grantTier } from '../server/src/identity/workspaces.ts'
import { systemClock } from '../server/src/kernel/clock.ts'
import { createIds } from '../server/src/kernel/ids.ts'
import { usd } from '../server/src/kernel/money.ts'
import { createSeal } from '../server/src/kernel/seal.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import { creditAccount } from '../server/src/ledger/credit.ts'
import { saveUpstream } from '../server/src/upstreams/configure.ts'

/** A master key for an installation that lives as long as a test or an afternoon. */
export function makeMasterKey(): Secret {
  return new Secret(randomBytes(32).toString('base64'))
}

const ids = createIds({ clock: systemClock })
const ACTOR = 'the seed'

/** The sandbox's upstreams by the slots that operations ask. */
const SLOTS = {
  rerank: { prefix: '/rerank', kind: 'native' },
  reseller: { prefix: '/reseller', kind: 'managed' },
  comments: { prefix: '/comments', kind: 'native' },
  quotes: { prefix: '/quotes', kind: 'native' },
  financial: { prefix: '/financial', kind: 'native' },
  traffic: { prefix: '/traffic', kind: 'native' },
} as const

type Parts = { readonly pool: pg.Pool; readonly masterKey: Secret; readonly sandboxUrl: string }

/** Points every slot of test mode at a sandbox. */
export async function bindSandbox({ pool, masterKey, sandboxUrl }: Parts): Promise<void> {
  const seal = createSeal({ current: masterKey })
  for (const [slot, { prefix, kind }] of Object.entries(SLOTS))
    await saveUpstream(
      { pool, ids, seal },
      { slot, mode: 'test', baseUrl: sandboxUrl + prefix, kind, credential: new Secret('sandbox-key') },
    )
}

/** A customer to play with: test money, and limits that nobody meets by hand. */
export async function seedCustomer(pool: pg.Pool): Promise<{ readonly workspaceId: string; readonly apiKey: Secret }> {
  const { id: workspaceId, testAccountId } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Development' })
  await grantTier({ pool, ids }, ACTOR, workspaceId, { tier: 'growth' })
  await creditAccount(pool, { entryId: ids.next(), accountId: testAccountId, kind: 'payment', amount: usd('100') })
  const { secret } = await createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'test', name: 'development' })
  return { workspaceId, apiKey: secret }
}
