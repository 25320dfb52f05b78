import { createHash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { asFault, type FaultCode } from '../kernel/fault.ts'
import { type JsonLimits, parseJson } from './json.ts'

/** Parses bodies beside the thread that serves calls, and digests them behind `head`, because a large one can take a second. */
export type ParseTask = { readonly bytes: Uint8Array; readonly limits: JsonLimits; readonly head: string }
export type Parsed = { readonly digest: string } & (
  | { readonly value: unknown }
  | { readonly code: FaultCode; readonly message: string }
)

function parsed({ bytes, limits, head }: ParseTask): Parsed {
  const digest = createHash('sha256').update(head).update(bytes).digest('base64url')
  try {
    return { digest, value: parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), limits) }
  } catch (error) {
    const { code, message } = asFault(error)
    return { digest, code, message }
  }
}

parentPort?.on('message', (task: ParseTask) => parentPort?.postMessage(parsed(task)))
