import type { ServerResponse } from 'node:http'
import type { OpenEntry } from './journal.ts'
import type { Frame } from './upstreams/models/stream.ts'
import { tokensOfBytes } from './upstreams/models/tokens.ts'

/**
 * Sends frames as fast as the client reads them, with a pause after each delta if there is to be one, and writes down
 * how far it has come. Rejects as soon as the client has left. Thousands may be under way, so each has but one timer.
 */
export function sendStream(
  response: ServerResponse,
  frames: Iterable<Frame>,
  everyMs: number,
  entry: OpenEntry,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const rest = frames[Symbol.iterator]()
  let bytes = 0
  let timer: NodeJS.Timeout | undefined

  function sendMore(): void {
    for (let next = rest.next(); !next.done; next = rest.next()) {
      const frame = next.value
      const isTaken = response.write(frame.text)
      bytes += frame.bytes
      entry.tokens = tokensOfBytes(bytes)
      if (frame.usage) entry.usage = frame.usage
      if (!isTaken) response.once('drain', sendMore)
      else if (frame.kind === 'delta' && everyMs > 0) pause()
      else continue
      return
    }
    stop()
    resolve()
  }

  function pause(): void {
    if (timer) timer.refresh()
    else timer = setTimeout(sendMore, everyMs)
  }

  function stop(): void {
    clearTimeout(timer)
    response.off('close', leave)
    response.off('drain', sendMore)
  }

  function leave(): void {
    stop()
    reject(new Error('the client has left'))
  }

  response.once('close', leave)
  if (response.destroyed) leave()
  else sendMore()
  return promise
}
