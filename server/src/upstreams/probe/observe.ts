import type { Clock } from '../../kernel/clock.ts'
import type { Reported, StreamReader } from '../../protocols/protocol.ts'
import { headersFor } from '../../protocols/protocols.ts'
import { createFrameSplitter } from '../../protocols/sse.ts'
import type { Binding } from '../bindings.ts'
import type { OpenReply, Transport } from '../transport.ts'
import { DIALECTS, type ProbedProtocol, type RawCounts } from './dialects.ts'
import type { Experiment } from './experiments.ts'

/** What came of an experiment. */
export type Observation = {
  readonly status: number
  readonly isStream: boolean
  readonly bytes: number
  /** What was generated and shown. */
  readonly text: string
  /** Whether the answer has the form of its protocol. */
  readonly isReadable: boolean
  readonly stop: unknown
  readonly isStoppedByLength: boolean
  /** Of an answer in one piece. */
  readonly counts: RawCounts | undefined
  /** As the gateway would add them up. */
  readonly reported: Reported
  readonly reply: RawReply
}

/** The bytes of an answer, and when they came. */
export type RawReply = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: readonly { readonly atMs: number; readonly bytes: Buffer }[]
  /** Whether it came to its end, or we left before. */
  readonly end: 'complete' | 'left'
}

type Parts = {
  readonly transport: Pick<Transport, 'open'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly binding: Binding
  readonly protocol: ProbedProtocol
}

/** What the gateway reads of a model's answer at the most. */
export const REPLY_MOST_BYTES = 64 * 1_048_576
const DEADLINES = { connectMs: 10_000, headersMs: 120_000, idleMs: 60_000, totalMs: 300_000 }
/** Where reasoning is counted is what the probe finds out: what may be output counts as output until then. */
const ALL_REASONING = { reasoning: 'apart' } as const

/** The headers of an experiment, our credential excepted. */
export function headersOf(protocol: ProbedProtocol, { isStream }: Experiment): Record<string, string> {
  return {
    accept: isStream ? 'text/event-stream' : 'application/json',
    'content-type': 'application/json',
    ...headersFor(DIALECTS[protocol].whole, {}),
  }
}

/** Asks once, and reads the answer to its end or, where the experiment says so, to its first words. */
export async function observe(parts: Parts, experiment: Experiment): Promise<Observation> {
  const { transport, clock, binding, protocol } = parts
  const startedMs = clock.monotonicMs()
  const reply = await transport.open({
    upstream: binding,
    method: 'POST',
    target: experiment.target,
    headers: { ...headersOf(protocol, experiment), ...credentialOf(parts) },
    body: Buffer.from(experiment.body),
    maxBodyBytes: REPLY_MOST_BYTES,
    deadlines: DEADLINES,
  })
  const { status, headers } = reply
  const isStream = /^text\/event-stream\b/i.test(headers['content-type'] ?? '')
  const { stream } = DIALECTS[protocol].streamed
  const reader = isStream ? stream?.createReader({ choices: 1, wantsUsage: true }, ALL_REASONING) : undefined
  const gathering = {
    reply,
    reader,
    leaves: experiment.leaves && status < 300,
    sinceMs: () => clock.monotonicMs() - startedMs,
  }
  const raw = { status, headers, ...(await gather(gathering)) }
  return reader === undefined ? wholeObservation(protocol, raw) : streamObservation(reader, raw)
}

function credentialOf({ binding: { credential }, protocol }: Parts): Record<string, string> {
  if (credential === null) return {}
  const header = DIALECTS[protocol].whole.credentialHeader
  return { [header]: header === 'authorization' ? `Bearer ${credential.reveal()}` : credential.reveal() }
}

type Gathering = {
  readonly reply: OpenReply
  readonly reader: StreamReader | undefined
  readonly leaves: boolean
  readonly sinceMs: () => number
}

/** A stream is taken frame by frame, so that we leave at the same words however its bytes were packed. */
function gather({ reply, reader, leaves, sinceMs }: Gathering): Promise<Pick<RawReply, 'pieces' | 'end'>> {
  const { promise, resolve, reject } = Promise.withResolvers<Pick<RawReply, 'pieces' | 'end'>>()
  const pieces: { atMs: number; bytes: Buffer }[] = []
  const splitter = createFrameSplitter()
  let hasLeft = false
  const keep = (bytes: Buffer) => pieces.push({ atMs: Math.round(sinceMs()), bytes: Buffer.from(bytes) })

  function takeFrames(): void {
    for (let frame = splitter.next(); frame !== undefined; frame = splitter.next()) {
      keep(frame.bytes)
      reader?.push(frame.bytes)
      if (!leaves || reader?.wholeText() === '') continue
      hasLeft = true
      reply.body.giveUp()
      return
    }
  }

  /** Frames have bounds, and who passes them is read no further. */
  function readPiece(piece: Buffer): void {
    try {
      splitter.feed(piece)
      takeFrames()
    } catch (error) {
      reject(error)
      reply.body.giveUp()
    }
  }

  reply.body.read({
    onPiece(piece) {
      if (hasLeft) return
      if (reader === undefined) keep(piece)
      else readPiece(piece)
    },
    onEnd() {
      const rest = reader === undefined ? undefined : splitter.finish()
      if (rest !== undefined) {
        keep(rest.bytes)
        reader?.push(rest.bytes)
      }
      reader?.finish()
      resolve({ pieces, end: 'complete' })
    },
    onFailure(failure) {
      if (hasLeft) resolve({ pieces, end: 'left' })
      else reject(failure)
    },
  })
  return promise
}

function wholeObservation(protocol: ProbedProtocol, reply: RawReply): Observation {
  const { whole, stopOf, lengthStop, countsOf } = DIALECTS[protocol]
  const body = Buffer.concat(reply.pieces.map(({ bytes }) => bytes))
  const json = jsonIn(body)
  const isReadable = reply.status < 300 && whole.formOf(json) === 'answer'
  const stop = stopOf(json)
  return {
    status: reply.status,
    isStream: false,
    bytes: body.length,
    text: isReadable ? whole.textOf(json) : '',
    isReadable,
    stop,
    isStoppedByLength: stop === lengthStop,
    counts: isReadable ? countsOf(json) : undefined,
    reported: isReadable ? whole.usageOf(json, ALL_REASONING) : {},
    reply,
  }
}

function streamObservation(reader: StreamReader, reply: RawReply): Observation {
  return {
    status: reply.status,
    isStream: true,
    bytes: reply.pieces.reduce((sum, { bytes }) => sum + bytes.length, 0),
    text: reader.wholeText(),
    isReadable: reader.state() === 'complete' || reply.end === 'left',
    stop: undefined,
    isStoppedByLength: false,
    counts: undefined,
    reported: reader.reported(),
    reply,
  }
}

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
