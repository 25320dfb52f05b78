import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { labelSteps } from '../../server/src/ledger/erase-labels.ts'
import { closeWorkspaces } from '../../server/src/people/close-workspaces.ts'
import { createSendMail } from '../../server/src/storage/mail.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { dieAfterStatement } from '../storage/die-after.ts'

/**
 * For tests, a worker's process that closes what is due, and ends with SIGKILL as soon as its n-th statement has left. It tells how many
 * statements it took, where it lives so long.
 */
export type Mortal = { readonly url: string; readonly masterKey: string; readonly dieAfter: number | null }
export type Survived = { readonly closed: number; readonly statements: number }

process.once('message', async ({ url, masterKey, dieAfter }: Mortal) => {
  const pools = createPools({ url: new Secret(url), log: silentLog })
  const pool = pools.rest
  await pool.query('select 1')
  const statements = dieAfterStatement(dieAfter)
  const sendMail = createSendMail({
    ids: createIds({ clock: systemClock }),
    seal: createSeal({ current: new Secret(masterKey) }),
  })
  const closed = await closeWorkspaces({
    ...{ pool, sendMail, siteUrl: 'https://site.example', by: { actor: `worker ${process.pid}`, origin: {} } },
    labelSteps: (accountId) => labelSteps(pool, accountId),
    // The pauses are for others, of whom there are none.
    clock: { sleep: async () => {} },
  })
  process.send?.({ closed, statements: statements() } satisfies Survived)
  await pools.close()
  process.disconnect()
})
