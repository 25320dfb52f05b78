import { Secret } from '../../../server/src/kernel/secret.ts'
import { dieAfterStatement } from '../../storage/die-after.ts'
import { type Deed, perform } from './deeds.ts'
import { connectPeople } from './world.ts'

/**
 * For tests, a process of its own that does one thing, and ends with SIGKILL as soon as its n-th statement has left: before it hears
 * of it, and before the next one. It tells what came of it and how many statements that took, where it lives so long.
 */
export type Mortal = {
  readonly url: string
  readonly masterKey: string
  readonly deed: Deed
  readonly address: string
  /** Null to live. */
  readonly dieAfter: number | null
}
export type Survived = { readonly done: string; readonly statements: number }

process.once('message', async ({ url, masterKey, deed, address, dieAfter }: Mortal) => {
  const world = connectPeople(url, { masterKey: new Secret(masterKey) })
  await world.pool.query('select 1')
  const statements = dieAfterStatement(dieAfter)
  const done = await perform(world, deed, address)
  process.send?.({ done, statements: statements() } satisfies Survived)
  await world.close()
  process.disconnect()
})
