import { parentPort } from 'node:worker_threads'
import { asFault, type FaultCode } from '../kernel/fault.ts'
import { type JsonLimits, parseJson } from './json.ts'

/** Parses bodies beside the thread that serves calls, because a large one can take a second. */
export type ParseTask = { readonly bytes: Uint8Array; readonly limits: JsonLimits }
export type Parsed = { readonly value: unknown } | { readonly code: FaultCode; readonly message: string }

function parsed({ bytes, limits }: ParseTask): Parsed {
  try {
    return { value: parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), limits) }
  } catch (error) {
    const { code, message } = asFault(error)
    return { code, message }
  }
}

parentPort?.on('message', (task: ParseTask) => parentPort?.postMessage(parsed(task)))
