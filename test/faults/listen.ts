import { ENDED_BY } from '../../server/src/protocols/limit-end.ts'
import { isStreamed, type Operation, type Told } from './history.ts'
import type { StreamedSpeech } from './speech.ts'

/** What the code of a stream's error is where the upstream told of it in its own words. */
export const UPSTREAMS_OWN = 'told by the upstream'

/** Of these the caller pays what it was given; after any other error nothing. */
const OF_UPSTREAMS: ReadonlySet<string> = new Set([UPSTREAMS_OWN, 'upstream_transport', 'managed_upstream_transport'])

/** Whether a stream ended with an error that its upstream made. */
export function isBrokenOffUpstream(operation: Operation): boolean {
  return isStreamed(operation) && OF_UPSTREAMS.has(operation.told.code ?? '')
}

type Listened = {
  readonly told: Pick<Told, 'costNanos' | 'code' | 'frames' | 'heardBytes' | 'isAtCeiling' | 'error'>
  /** A clean end, an error frame, or neither: a reset, or an end that says nothing. */
  readonly outcome: 'ok' | 'fail' | 'unknown'
}

/** Reads a stream for as long as it comes. */
export async function listen(body: AsyncIterable<Uint8Array>, speech: StreamedSpeech, id: string): Promise<Listened> {
  const decoder = new TextDecoder()
  let [rest, frames, heardBytes, isWhole, isAtCeiling] = ['', 0, 0, false, false]
  let costNanos: bigint | undefined
  let code: string | undefined
  let failure: string | undefined

  function take(frame: string): void {
    const data = fieldOf(frame, 'data')
    const { text = '', isEnd, error, costNanos: cost } = speech.hear(fieldOf(frame, 'event'), data)
    frames += 1
    heardBytes += Buffer.byteLength(text)
    if (isEnd) isWhole = true
    if (data.includes(`"${ENDED_BY}"`)) isAtCeiling = true
    if (cost !== undefined) costNanos = cost
    // Ours comes last where there are two: it says that what it cost could not be settled.
    if (error !== undefined) code = error.about === id ? error.code : UPSTREAMS_OWN
  }

  try {
    for await (const piece of body) {
      const parts = (rest + decoder.decode(piece, { stream: true })).split(/\r\n\r\n|\n\n/)
      rest = parts.pop() ?? ''
      for (const part of parts) take(part)
    }
  } catch (error) {
    failure = error instanceof Error ? error.message : 'no error'
  }
  const told = {
    frames,
    heardBytes,
    ...(isAtCeiling && { isAtCeiling }),
    ...(costNanos !== undefined && { costNanos }),
    ...(code !== undefined && { code }),
    ...(failure !== undefined && { error: failure }),
  }
  return { told, outcome: code !== undefined ? 'fail' : isWhole ? 'ok' : 'unknown' }
}

function fieldOf(frame: string, name: string): string {
  const line = frame.split(/\r?\n/).find((one) => one.startsWith(`${name}: `))
  return line?.slice(name.length + 2) ?? ''
}
