import { after } from 'node:test'

/**
 * Loaded into every test process: where something is still open when all its tests are over, the process ends all the same,
 * a moment later. The runner's own way of forcing the end loses results that were not written yet. Nor does it end by
 * falling off the end: Node then waits for handles to close, and has been seen to wait for ever, at full speed.
 */
const GRACE_MS = 2_000

after(() => {
  setTimeout(() => process.exit(), GRACE_MS).unref()
  process.once('exit', () => process.exit())
})
