/**
 * Where something is still open when all tests are over, the process ends all the same, a moment after its last result was
 * written. The runner's own way of forcing the end loses results, and so does an exit while whoever reads them is busy. Nor does it
 * end by falling off the end: Node then waits for handles to close, and has been seen to wait for ever, at full speed.
 */
const LOOK_MS = 100
const LOOKS = 20

export function endSoon(): void {
  let looks = 0
  setInterval(() => {
    looks = process.stdout.writableLength > 0 ? 0 : looks + 1
    if (looks === LOOKS) process.exit()
  }, LOOK_MS).unref()
  process.once('exit', () => process.exit())
}
