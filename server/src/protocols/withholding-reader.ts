import { CollectedBody } from './collected-body.ts'
import { UNREAD_ALLOWANCE, unreadText, unreadTextOf } from './generated-text.ts'
import { KeptText } from './kept-text.ts'
import { type Likeness, likenessOf } from './likeness.ts'
import type { LimitEnding } from './limit-end.ts'
import { isMembers } from './members.ts'
import { Outgoing } from './outgoing.ts'
import type { Reported, StreamReader } from './protocol.ts'
import { createFrameSplitter, type Frame } from './sse.ts'
import { COST, endOfMembers, endOfUsage, errorTold } from './usage.ts'

/** Where a frame has room for the cost: at the end of its usage, or beside its other members, be it only where no frame before it had room. */
export type CostPlace = 'in_usage' | 'beside' | 'beside_if_nowhere'

/** What a protocol reads in a frame. */
export type Reading = {
  /** What was generated in it. */
  readonly text?: string
  /** What of it may be text that nobody expects there, where it has none and that is not all of it. */
  readonly unread?: unknown
  /** What the caller gets of the frame, where that is not all of it. */
  readonly bytes?: Buffer
  /** The answer ends with it: it is held back, and everything after it. */
  readonly isStop?: boolean
  /** The stream ends with it. It is held back too: a caller would take it for a good end. */
  readonly isEnd?: boolean
  readonly isError?: boolean
  /** Whether it reports what was used until its end. */
  readonly isReport?: boolean
  /** Whether it says nothing but its text, and leaves the protocol's reader as it was, whatever that text is. */
  readonly isPlain?: boolean
  /** Where it can tell the caller what the call cost. */
  readonly takesCost?: CostPlace | undefined
}

type Parts = {
  /** The frame's data as JSON; undefined where it is none. So many bytes of text were counted before it. */
  readonly read: (frame: Frame, json: unknown, countedBytes: number) => Reading
  readonly reported: () => Reported
  /** Where a frame has its usage. */
  readonly usagePath?: readonly string[]
  /** Members that differ from one plain frame to the next and say nothing: a number of the frame, padding. */
  readonly varying?: readonly string[]
  /** The most that one frame has, of a protocol that holds back no more than a frame: it takes the room of what is held back. */
  readonly mostFrameBytes?: number
  /** How an answer ends that may not go on. */
  readonly ending: LimitEnding
}

/** A frame that has more text than may pass, and what had been reported before it. */
type Waiting = {
  readonly frame: Frame
  readonly json: unknown
  readonly reading: Reading
  readonly reported: Reported
}

/** So many frames in a row may each be like no other before it is given up to look for likeness. */
const MOST_UNLIKE = 16
export const MOST_HELD_BYTES = 4_194_304

const BLANK_LINE = Buffer.from('\n\n')
const NO_BYTES: Buffer = Buffer.alloc(0)

/**
 * Passes frames on, and holds them back from the one on that ends the answer.
 *
 * It is complete when such a frame came and then the protocol's own end, or the end of the body. What comes after the
 * protocol's end is neither read nor kept, because no caller reads it. An error that comes before is final. It is held back until
 * the call is settled, and then told with the cost; one that comes while frames are held back is not told in its own words.
 */
export function createWithholdingReader(parts: Parts): StreamReader {
  const { read, reported, usagePath, varying, mostFrameBytes, ending } = parts
  const frames = createFrameSplitter(mostFrameBytes)
  const text = new KeptText()
  const held = new CollectedBody(undefined)
  let heldBytes = 0
  /** Where the cost goes in what is held back, and whether that is in a usage: there callers look for it first. */
  let costAt = -1
  let isCostInUsage = false
  /** How much of the text is not held back, once anything is. */
  let passedText: number | undefined
  /** How much had come before the upstream told of its failure. */
  let errorAt: number | undefined
  let deliveredText = 0
  /** What may be text in frames that gave none, until it is more than is let be. */
  let unread = ''
  let isUnreadCounted = false
  let likeness: Likeness | undefined
  let unlike = 0
  let isStopped = false
  let isEnded = false
  let isFailed = false
  /** Frames in which the upstream tells of its failure. Nothing passes from the first one on. */
  const errors: Frame[] = []
  let errorBytes = 0
  let isReleased = false
  /** Whether more was generated after the last report of the output, so that it does not say all of it. */
  let report: 'none' | 'current' | 'passed' = 'none'
  /** How much text may pass. */
  let allowedBytes = Number.POSITIVE_INFINITY
  /** Whether anybody has said so: of a stream that nobody can cut, nothing is kept for its end. */
  let mayBeCut = false
  let waiting: Waiting | undefined
  /** Pieces that came while a frame waited, and whether the body has ended behind them. */
  const backlog: Buffer[] = []
  let hasFinished = false
  let passedFrames = 0

  function take(frame: Frame, passed: Outgoing): void {
    const json = frame.data === undefined ? undefined : parsed(frame.data)
    // No frame has more text than bytes, so that this is asked for at the end of what may pass alone.
    const before = text.seenBytes + unread.length + frame.bytes.length > allowedBytes ? reportedNow() : undefined
    const reading = read(frame, json, text.seenBytes)
    if (before !== undefined && isBeyond(reading, frame, json)) waiting = { frame, json, reading, reported: before }
    else pass(frame, json, reading, passed)
  }

  /** Whether it has more text than may pass, also of what nobody expected where it stands, once that counts. */
  function isBeyond(reading: Reading, frame: Frame, json: unknown): boolean {
    const found = reading.text || unread + unreadIn(reading, frame, json)
    const counts = reading.text || isUnreadCounted || found.length > UNREAD_ALLOWANCE
    return counts !== false && text.seenBytes + Buffer.byteLength(found) > allowedBytes
  }

  function pass(frame: Frame, json: unknown, reading: Reading, passed: Outgoing): void {
    // The body broke off inside a frame. Half of one would spoil whatever the caller is told next.
    if (!frame.isTerminated && !isMembers(json) && reading.isEnd !== true) return
    const textBytes = text.bytes
    passedFrames += 1
    if (reading.isError) {
      isFailed = true
      if (isMembers(json) && passedText === undefined) holdError(frame)
    }
    if (reading.isStop) isStopped = true
    if (reading.isEnd) isEnded = true
    if (reading.isStop || reading.isEnd) passedText ??= text.bytes
    if (reading.text) text.add(reading.text)
    else addUnread(unreadIn(reading, frame, json))
    if (reading.isReport) report = 'current'
    else if (reading.text) noteText()
    if (errors.length > 0) {
      errorAt ??= text.bytes
      return
    }
    const bytes = terminated(frame, reading.bytes ?? frame.bytes)
    if (passedText === undefined) {
      if (mayBeCut) ending.passed(json, { textBytes, frames: passedFrames - 1 }, frame.bytes.length)
      passed.add(bytes)
      if (reading.isPlain && reading.text && unlike < MOST_UNLIKE) learn(frame, reading.text, bytes)
    } else {
      if (reading.takesCost) placeCost(frame, reading.takesCost, reading.bytes)
      hold(bytes)
    }
  }

  function noteText(): void {
    if (report === 'current') report = 'passed'
  }

  /** The last usage tells the cost; where none has room for it, the last frame that has. */
  function placeCost(frame: Frame, place: CostPlace, given: Buffer = frame.bytes): void {
    if (place === 'beside_if_nowhere' && costAt !== -1) return
    const inUsage = place === 'in_usage' ? endOfUsage(frame, usagePath) : -1
    const at = inUsage === -1 ? endOfMembers(frame) : inUsage
    if (at === -1 || (isCostInUsage && inUsage === -1)) return
    // What the caller does not get of the frame stood before that place.
    costAt = heldBytes + at - (frame.bytes.length - given.length)
    isCostInUsage = inUsage !== -1
  }

  /** A stream that we can't read is passed on all the same, and must be neither free nor endless. */
  function addUnread(found: string): void {
    unread += found
    if (!isUnreadCounted && unread.length <= UNREAD_ALLOWANCE) return
    isUnreadCounted = true
    text.add(unread)
    unread = ''
  }

  function learn(frame: Frame, text: string, bytes: Buffer): void {
    const trial = (data: string) => {
      const { isPlain, text: changed } = read({ ...frame, data }, parsed(data), 0)
      return isPlain ? changed : undefined
    }
    const learnt = likenessOf(frame, text, { passed: bytes, read: trial, varying })
    if (learnt === undefined) return
    likeness = learnt
    unlike += 1
  }

  /** Takes the frames at the start of a piece that are like one before; gives where the others start. Most are, in most streams. */
  function takeAlike(piece: Buffer, passed: Outgoing): number {
    let start = 0
    if (likeness === undefined || passedText !== undefined || errors.length > 0 || !frames.isBetween()) return start
    while (start < piece.length) {
      if (!likeness.isAt(piece, start)) break
      const { textStart, textEnd, end, passedRest } = likeness
      if (text.seenBytes + textEnd - textStart > allowedBytes) break
      noteText()
      passedFrames += 1
      text.addBytes(piece, textStart, textEnd)
      if (passedRest === undefined) passed.add(start === 0 && end === piece.length ? piece : piece.subarray(start, end))
      else {
        passed.add(piece.subarray(start, textEnd))
        passed.add(passedRest)
      }
      start = end
      unlike = 0
    }
    return start
  }

  function hold(bytes: Buffer): void {
    if (heldBytes + bytes.length > MOST_HELD_BYTES) {
      throw new RangeError(`After its answer, the stream has more than ${MOST_HELD_BYTES} bytes.`)
    }
    held.add(bytes)
    heldBytes += bytes.length
  }

  function holdError(frame: Frame): void {
    errorBytes += frame.bytes.length
    if (errorBytes > MOST_HELD_BYTES)
      throw new RangeError(`The stream has errors of more than ${MOST_HELD_BYTES} bytes.`)
    errors.push(frame)
  }

  /** A stream beyond its bounds has failed, and what its last piece had before that is neither passed on nor delivered. */
  function passing(work: (passed: Outgoing) => void): readonly Buffer[] {
    if (isEnded || isReleased) return []
    const passed = new Outgoing()
    try {
      work(passed)
    } catch (error) {
      isFailed = true
      errors.length = 0
      throw error
    }
    deliveredText = errorAt ?? passedText ?? text.bytes
    return passed.buffers()
  }

  function takePiece(piece: Buffer, passed: Outgoing): void {
    const start = takeAlike(piece, passed)
    if (start === piece.length) return
    frames.feed(start === 0 ? piece : piece.subarray(start))
    takeFrames(passed)
  }

  function takeFrames(passed: Outgoing): void {
    const isOver = () => isEnded || waiting !== undefined
    for (let frame = frames.next(); frame !== undefined; frame = isOver() ? undefined : frames.next()) {
      take(frame, passed)
    }
  }

  function takeLast(passed: Outgoing): void {
    hasFinished = true
    const last = frames.finish()
    if (last !== undefined) take(last, passed)
    if (waiting === undefined) isEnded = true
  }

  /** What waited, and what is behind it, as far as it may pass now. */
  function goOn({ frame, json, reading }: Waiting, passed: Outgoing): void {
    if (isBeyond(reading, frame, json)) return
    waiting = undefined
    pass(frame, json, reading, passed)
    if (!isEnded) takeFrames(passed)
    while (waiting === undefined && !isEnded && backlog.length > 0) takePiece(backlog.shift() ?? NO_BYTES, passed)
    if (waiting === undefined && !isEnded && hasFinished) takeLast(passed)
  }

  /** The rest of the piece that the frame came in is a view of it, and of the same length at the most. */
  function waitingBytes(): number {
    return waiting === undefined ? 0 : backlog.reduce((sum, piece) => sum + piece.length, waiting.frame.bytes.length)
  }

  function reportedNow(): Reported {
    const said = reported()
    if (report !== 'passed' || said.output === undefined) return said
    const { output, ...rest } = said
    return { ...rest, outputSoFar: output }
  }

  return {
    push(piece) {
      return passing((passed) => {
        if (waiting === undefined) takePiece(piece, passed)
        else backlog.push(piece)
      })
    },

    finish() {
      return passing((passed) => {
        if (waiting === undefined) takeLast(passed)
        else hasFinished = true
      })
    },

    allow(textBytes) {
      allowedBytes = textBytes
      mayBeCut = true
      const held = waiting
      return held === undefined ? [] : passing((passed) => goOn(held, passed))
    },

    isWaiting: () => waiting !== undefined,

    endAtLimit(end) {
      isEnded = true
      isReleased = true
      // An end without a beginning is no answer in any protocol.
      if (passedFrames === 0) return []
      const passage = { textBytes: text.bytes, frames: passedFrames }
      return [Buffer.from(ending.frames(end, passage, (from, to) => text.between(from, to)))]
    },

    state() {
      if (isFailed) return 'failed'
      return isStopped && isEnded ? 'complete' : 'open'
    },

    isHolding: () => passedText !== undefined,

    // A stop reason stands in one frame alone, and what comes after it is only about the answer.
    hasStopOfItsOwn: true,

    reported: () => waiting?.reported ?? reportedNow(),

    deliveredText: () => text.first(deliveredText),

    wholeText: () => text.first(text.bytes),

    textBytes: () => text.seenBytes,

    keptBytes: () =>
      text.bytes + heldBytes + errorBytes + frames.keptBytes() + waitingBytes() + (ending.keptBytes?.() ?? 0),

    endInError(end) {
      const [first, ...others] = errors
      if (first === undefined) return undefined
      return Buffer.concat([first, ...others].map((frame) => errorTold(frame, end)))
    },

    release(cost) {
      if (isReleased) return []
      isReleased = true
      deliveredText = text.bytes
      if (heldBytes === 0) return []
      const bytes = held.whole()
      if (costAt === -1) return [bytes]
      return [bytes.subarray(0, costAt), Buffer.from(`,"${COST}":${JSON.stringify(cost)}`), bytes.subarray(costAt)]
    },
  }
}

/** An error, and what ends a stream, has no text but what its protocol reads in it. */
function unreadIn(reading: Reading, frame: Frame, json: unknown): string {
  if ('unread' in reading) return unreadText(reading.unread)
  return reading.isEnd || reading.isError ? '' : unreadTextOf(frame, json)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whatever follows has to start a frame of its own. */
function terminated(frame: Frame, bytes: Buffer): Buffer {
  return frame.isTerminated || bytes.length === 0 ? bytes : Buffer.concat([bytes, BLANK_LINE])
}
