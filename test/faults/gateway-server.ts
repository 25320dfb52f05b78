import { readFileSync } from 'node:fs'
import { serve } from '../../harness/serve.ts'
import { type Clock, systemClock } from '../../server/src/kernel/clock.ts'

/** The real server as a program whose wall clock can be moved while it runs: SIGUSR2 makes it read the offset anew. */
const file = process.env.HARNESS_CLOCK_FILE ?? ''
let offsetMs = 0
process.on('SIGUSR2', () => {
  offsetMs = Number(readFileSync(file, 'utf8'))
})
const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offsetMs }

await serve({ clock })
