import { after } from 'node:test'

/**
 * Loaded into every test process: where something is still open when all its tests are over, the process ends all the same,
 * a moment later. The runner's own way of forcing the end loses results that were not written yet.
 */
const GRACE_MS = 2_000

after(() => {
  setTimeout(() => process.exit(), GRACE_MS).unref()
})
