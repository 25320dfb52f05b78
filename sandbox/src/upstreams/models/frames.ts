import type { Asked } from '../../upstream.ts'
import type { Dialect } from './dialect.ts'
import { piecesOf } from './prose.ts'
import type { Frame } from './stream.ts'

/** The frames, with what goes wrong among them once the deltas have carried so many bytes. */
export function* spoiled(
  frames: Iterable<Frame>,
  fault: 'error' | 'garbage' | 'no-end' | undefined,
  bytes: number,
  dialect: Dialect,
  asked: Asked,
): Iterable<Frame> {
  let carried = 0
  let isDone = fault === undefined || fault === 'no-end'
  for (const frame of frames) {
    if (fault === 'no-end' && frame.kind === 'end') return
    yield frame
    if (frame.kind === 'delta') carried += frame.bytes
    if (isDone || carried < bytes) continue
    isDone = true
    if (fault === 'error') {
      yield { text: dialect.errorFrame(asked), kind: 'end', bytes: 0 }
      return
    }
    yield { text: dialect.garbageFrame, kind: 'other', bytes: 0 }
  }
}

/** The frames up to the first delta with which so many bytes have been carried. */
export function* framesUpTo(bytes: number, frames: Iterable<Frame>): Iterable<Frame> {
  let carried = 0
  for (const frame of frames) {
    yield frame
    if (frame.kind !== 'delta') continue
    carried += frame.bytes
    if (carried >= bytes) return
  }
}

const PADDING_BYTES = 64 * 1024

/** The frames, with about so many bytes of comments after the first, which readers of such streams pass over. */
export function* padded(frames: Iterable<Frame>, bytes: number): Iterable<Frame> {
  let left = bytes
  for (const frame of frames) {
    yield frame
    for (; left > 0; left -= PADDING_BYTES)
      yield { text: `: ${'x'.repeat(Math.min(left, PADDING_BYTES))}\n\n`, kind: 'other', bytes: 0 }
  }
}

/** The frames, those that report figures as the rewrite makes them. */
export function* withUsageRewritten(frames: Iterable<Frame>, rewrite: (text: string) => string): Iterable<Frame> {
  for (const frame of frames) yield frame.usage ? { ...frame, text: rewrite(frame.text) } : frame
}

/** The deltas of a text, the tail as one of its own. */
export function* deltasOf(text: string, tail: string, bytes: number): Iterable<string> {
  yield* piecesOf(text, bytes)
  if (tail !== '') yield tail
}
