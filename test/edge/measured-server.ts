import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Changes } from '../../harness/changes.ts'

/**
 * The real server, which tells on SIGUSR2 how much processor time the longest turn of its event loop took since it was asked
 * the last time, and what its heap has once garbage is collected. Between two ticks of a timer that is due at once there is one
 * turn, so that what the thread used between them is what that turn used, and up to a tick's pause.
 */
const EVERY_MS = 2
const SETTLE_MS = 200
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc')

const usedMs = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
let lastMs = usedMs()
let longestMs = 0
setInterval(() => {
  const nowMs = usedMs()
  longestMs = Math.max(longestMs, nowMs - lastMs)
  lastMs = nowMs
}, EVERY_MS).unref()

process.on('SIGUSR2', async () => {
  const longest_turn_ms = longestMs
  // What is freed by one collection is given back by the next.
  for (let times = 0; times < 2; times += 1) {
    collectGarbage()
    await delay(SETTLE_MS)
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  process.stdout.write(`${JSON.stringify({ measured: true, longest_turn_ms, heapUsed, arrayBuffers })}\n`)
  longestMs = 0
  lastMs = usedMs()
})

export const changes: Changes = () => ({})
