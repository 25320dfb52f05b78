import { Secret } from '../../../server/src/kernel/secret.ts'
import { LIMITS, type Limits } from '../../../server/src/people/attempts.ts'
import { type Deed, type Done, perform } from './deeds.ts'
import { connectPeople } from './world.ts'

/** For tests, a process of its own that does what it is told together with others: all at once, as far as its connections go. */
export type Job = {
  readonly url: string
  readonly masterKey: string
  readonly limits: Partial<Limits>
  readonly deeds: readonly Deed[]
  /** From which network it comes, so that no two processes share an address. */
  readonly place: number
}
export type ToRacer = Job | 'go' | 'end'
export type FromRacer = 'ready' | readonly Done[]

/** So that nobody waits for a connection for longer than one is waited for. */
const AT_ONCE = 24

let prepared: (() => Promise<readonly Done[]>) | undefined
let close: (() => Promise<void>) | undefined

async function prepare({ url, masterKey, limits, deeds, place }: Job): Promise<void> {
  await close?.()
  const world = connectPeople(url, { masterKey: new Secret(masterKey), limits: { ...LIMITS, ...limits } })
  close = world.close
  await world.pool.query('select 1')
  prepared = async () => {
    const done: Done[] = []
    let next = 0
    const lane = async () => {
      for (let n = next++; n < deeds.length; n = next++) {
        const deed = deeds[n]
        // From another network each: what is raced for is not the limit of an address.
        const address = `${10 + place}.${(n >> 8) & 255}.${n & 255}.1`
        if (deed !== undefined) done[n] = await perform(world, deed, address)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
    return done
  }
}

/** Whoever started us is gone. */
process.on('disconnect', () => process.exit())

process.on('message', async (message: ToRacer) => {
  if (message === 'end') {
    await close?.()
    process.disconnect()
  } else if (message === 'go') process.send?.((await prepared?.()) ?? [])
  else {
    await prepare(message)
    process.send?.('ready')
  }
})
