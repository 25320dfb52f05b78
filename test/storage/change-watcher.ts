import { setTimeout as delay } from 'node:timers/promises'
import { PATIENCE_MS } from '../../harness/until.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { createThings } from './things.ts'

/** A process of its own: says on standard output what its cache gives for each key whenever that is new. */
const [url = '', keys = ''] = process.argv.slice(2)
const things = createThings(url, silentLog, PATIENCE_MS)
const last = new Map<string, string | undefined>()

for (let round = 0; ; round += 1) {
  for (const key of keys.split(',')) {
    const value = await things.cache.get(key)
    if (value !== last.get(key)) process.stdout.write(`${key} ${value} ${Date.now()}\n`)
    last.set(key, value)
  }
  if (round === 0) process.stdout.write('ready\n')
  await delay(5)
}
