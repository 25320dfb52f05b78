import { Readable } from 'node:stream'

/**
 * A body that is made while it is read, for a bounded time. Who reads too slowly gets no end of it, and knows by that.
 */

type Download = {
  readonly deadlineMs: number
  /** Called once, however it ends. */
  readonly onEnd: () => void
}

export function downloadOf(parts: AsyncIterable<string>, { deadlineMs, onEnd }: Download): Readable {
  const body = Readable.from(parts, { objectMode: false, highWaterMark: 65_536 })
  const late = setTimeout(() => body.destroy(new Error(`the download took longer than ${deadlineMs} ms`)), deadlineMs)
  late.unref()
  body.once('close', () => {
    clearTimeout(late)
    onEnd()
  })
  return body
}
