import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type Bill, billUpTo } from './bill.ts'
import { type Bytes, firstOf, paddedTo, wholeBytes } from './bytes.ts'
import { closeEntry, type OpenEntry, type Outcome } from './journal.ts'
import { jsonOf, type Plan } from './plan.ts'
import { sendStream } from './send-stream.ts'
import { usageIn } from './upstream.ts'
import { framesUpTo, padded } from './upstreams/models/frames.ts'
import type { Frame, Stream } from './upstreams/models/stream.ts'

const HANG_LIMIT_MS = 600_000
/** Between the last byte and a reset, since a reset may overtake what the client has not read yet. */
const SETTLE_MS = 20

/** The answers that hang, which nobody waits for when the sandbox stops. */
export type Hung = Set<ServerResponse>

/** Answers as planned, with whatever goes wrong on the way, and writes down what came of it. */
export async function deliver(response: ServerResponse, plan: Plan, entry: OpenEntry, hung: Hung): Promise<void> {
  const left = new AbortController()
  response.once('close', () => left.abort())
  try {
    closeEntry(entry, await perform(response, plan, entry, left.signal))
    if (entry.outcome === 'hung') hang(response, hung)
  } catch (error) {
    if (!left.signal.aborted) throw error
    closeEntry(entry, 'left')
  }
  if (entry.bill !== null) entry.bill = billFor(entry.bill, plan, entry)
}

/** What was made of the answer, as far as the vendor stops when nobody is there to read it. */
function billFor(bill: Bill, plan: Plan, { outcome, status, tokens }: OpenEntry): Bill {
  const { onAbort } = plan.asked.deviance
  if (outcome === 'left' && onAbort === 'runs-on') return bill
  const stream = streamOf(plan)
  if (stream) return billUpTo(tokens ?? 0, stream.tokens, bill)
  const isStopped = outcome === 'left' && onAbort === 'stops' && status === null
  return isStopped ? billUpTo(0, 1, bill) : bill
}

async function perform(response: ServerResponse, plan: Plan, entry: OpenEntry, signal: AbortSignal): Promise<Outcome> {
  const { hang, reset, close, delayMs, firstByteMs, interims } = plan.delivery
  if (hang === 'accept') return 'hung'
  await sleep(delayMs, signal)
  if (close === 'before-headers') return cut(response)
  if (reset === 'before-headers') return resetConnection(response)
  if (hang === 'headers') return 'hung'
  for (let at = 0; at < interims; at += 1) sendInterim(response, at)

  const stream = streamOf(plan)
  const bytes = stream ? undefined : contentOf(plan)
  response.writeHead(plan.status, headersOf(plan, bytes?.length))
  response.flushHeaders()
  entry.status = plan.status
  await sleep(firstByteMs, signal)
  const isBroken = hang === 'body' || reset === 'in-body' || close === 'in-body'
  if (stream) await sendStream(response, framesOf(stream, plan, isBroken), stream.everyMs, entry)
  if (bytes) {
    const length = isBroken ? Math.floor(bytes.length / 2) : bytes.length
    if (!isBroken && plan.about && plan.bytes === undefined) entry.usage = usageIn(plan.body) ?? null
    await sendBody(response, bytes, length, plan.delivery.dripMs, signal)
  }
  if (hang === 'body') return 'hung'
  if (isBroken) await sleep(SETTLE_MS, signal)
  if (reset === 'in-body') return resetConnection(response)
  if (close === 'in-body') return cut(response)
  response.end()
  if (!response.writableFinished) await once(response, 'finish', { signal })
  return 'answered'
}

async function sendBody(
  response: ServerResponse,
  bytes: Bytes,
  length: number,
  dripMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (const chunk of firstOf(length, bytes)) {
    if (dripMs === 0) await write(response, chunk, signal)
    else
      for (let at = 0; at < chunk.length; at += 1) {
        await write(response, chunk.subarray(at, at + 1), signal)
        await sleep(dripMs, signal)
      }
  }
}

async function write(response: ServerResponse, chunk: Buffer, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (!response.write(chunk)) await once(response, 'drain', { signal })
}

function streamOf(plan: Plan): Stream | undefined {
  return plan.bytes === undefined && hasBody(plan) ? plan.stream : undefined
}

function framesOf(stream: Stream, plan: Plan, isBroken: boolean): Iterable<Frame> {
  const { paddingBytes } = plan.delivery
  const frames = isBroken ? brokenOff(stream, plan) : stream.frames()
  return paddingBytes > 0 ? padded(frames, paddingBytes) : frames
}

function brokenOff({ frames, bytes }: Stream, { delivery }: Plan): Iterable<Frame> {
  return framesUpTo(delivery.breaksAfter === 'first-delta' ? 0 : bytes / 2, frames())
}

function hasBody({ status }: Plan): boolean {
  return status !== 204 && status !== 304
}

function contentOf(plan: Plan): Bytes {
  if (!hasBody(plan)) return wholeBytes('')
  if (plan.bytes) return plan.bytes
  const { paddingBytes } = plan.delivery
  const json = jsonOf(plan)
  return paddingBytes > 0 ? paddedTo(Buffer.byteLength(json) + paddingBytes, json) : wholeBytes(json)
}

/** As a flat list, the only form in which Node sends a header twice. */
function headersOf(plan: Plan, length: number | undefined): string[] {
  const { contentType, headers, delivery } = plan
  const list = ['content-type', contentType]
  if (length !== undefined && !delivery.isChunked && hasBody(plan))
    list.push('content-length', String(Math.max(0, length + delivery.lengthOff)))
  for (const [name, value] of headers) list.push(name, value)
  return list
}

/** 100 and 103 in turn. */
function sendInterim(response: ServerResponse, at: number): void {
  if (at % 2 === 0) response.writeContinue()
  else response.writeEarlyHints({ link: '</sandbox>; rel=preload' })
}

function cut(response: ServerResponse): Outcome {
  response.socket?.destroySoon()
  return 'cut'
}

function resetConnection(response: ServerResponse): Outcome {
  response.socket?.resetAndDestroy()
  return 'reset'
}

/** Until the client gives up, the sandbox stops, or for so long that nobody can still be waiting. */
function hang(response: ServerResponse, hung: Hung): void {
  hung.add(response)
  const limit = setTimeout(() => response.destroy(), HANG_LIMIT_MS)
  response.once('close', () => {
    clearTimeout(limit)
    hung.delete(response)
  })
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal })
}
