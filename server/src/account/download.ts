import { Readable } from 'node:stream'

/**
 * A body that is made while it is read, for a bounded time. Who reads too slowly gets no end of it, and knows by that.
 */

type Download = {
  readonly deadlineMs: number
  /** Called once, however it ends. */
  readonly onEnd: () => void
}

/** Somebody who takes less of what is ready keeps a place that others wait for. */
const LEAST = { bytes: 262_144, everyMs: 60_000 }

export function downloadOf(parts: AsyncIterable<string>, { deadlineMs, onEnd }: Download): Readable {
  let [bytes, isReady] = [0, false]

  async function* counted(): AsyncGenerator<string> {
    for await (const part of parts) {
      bytes += part.length
      isReady = true
      yield part
      isReady = false
    }
  }

  const body = Readable.from(counted(), { objectMode: false, highWaterMark: 65_536 })
  const late = setTimeout(() => body.destroy(new Error(`the download took longer than ${deadlineMs} ms`)), deadlineMs)
  late.unref()
  const slow = setInterval(() => {
    if (isReady && bytes < LEAST.bytes)
      body.destroy(new Error(`less than ${LEAST.bytes} bytes were read in ${LEAST.everyMs} ms`))
    bytes = 0
  }, LEAST.everyMs)
  slow.unref()
  body.once('close', () => {
    clearTimeout(late)
    clearInterval(slow)
    onEnd()
  })
  return body
}
