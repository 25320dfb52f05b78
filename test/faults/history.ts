import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../harness/root.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import type { Question } from './speech.ts'
import type { Video } from './videos.ts'

/** What a client did and what it was told. `unknown` means that nobody told it what became of it. */
export type Operation = {
  readonly n: number
  readonly client: string
  readonly what: string
  readonly invokedAtMs: number
  readonly accountId?: Id
  readonly keyId?: Id
  /** A word in the request by which its upstream's journal knows it; copies of a request share it. */
  readonly mark?: string
  /** What is sold that it asks for, or whose price is changed. */
  readonly operation?: string
  readonly idempotencyKey?: string
  readonly quoteId?: string
  readonly question?: Question
  readonly video?: Video
  /** What an operator changes: an entry, a charge, a key. Or the task that a caller asks about. */
  readonly subject?: string
  /** Whether it was asked as a tool of an agent. */
  readonly isByTool?: boolean
  outcome: 'open' | 'ok' | 'fail' | 'unknown'
  endedAtMs: number
  told: Told
}

export type Told = {
  readonly status?: number
  readonly code?: string
  readonly id?: Id
  readonly costNanos?: bigint
  readonly balanceNanos?: bigint
  readonly limit?: number
  readonly left?: number
  readonly resetSeconds?: number
  readonly firstId?: Id
  readonly quoteId?: string
  readonly priceVersion?: number
  readonly error?: string
  readonly amount?: bigint
  /** Of a stream: how many frames came, how much of the text that was generated, and whether its caller hung up. */
  readonly frames?: number
  readonly heardBytes?: number
  /** Whether a stream ended where there was no more money for it, as if at an output limit. */
  readonly isAtCeiling?: boolean
  readonly isCut?: boolean
  /** Of a task: which, how it stands, what it cost, and which gateway said so. */
  readonly taskId?: Id
  readonly taskState?: string
  readonly taskCostNanos?: bigint
  readonly servedBy?: string
}

/** Whether it began to stream, however it went on. */
export function isStreamed({ told }: Operation): boolean {
  return told.frames !== undefined
}

type Invoked = Omit<Operation, 'n' | 'invokedAtMs' | 'outcome' | 'endedAtMs' | 'told'>

/** All that clients did, in memory for the judge and as lines of JSON for people. */
export class History {
  readonly operations: Operation[] = []
  readonly folder: string
  readonly #descriptor: number

  constructor(name: string) {
    this.folder = path.join(ROOT, '.farebox/faults', name)
    rmSync(this.folder, { recursive: true, force: true })
    mkdirSync(this.folder, { recursive: true })
    this.#descriptor = openSync(path.join(this.folder, 'history.jsonl'), 'w')
  }

  invoke(invoked: Invoked): Operation {
    const operation: Operation = {
      ...invoked,
      n: this.operations.length,
      invokedAtMs: Date.now(),
      outcome: 'open',
      endedAtMs: Number.POSITIVE_INFINITY,
      told: {},
    }
    this.operations.push(operation)
    this.#write({ at: operation.invokedAtMs, n: operation.n, type: 'invoke', ...invoked })
    return operation
  }

  end(operation: Operation, outcome: 'ok' | 'fail' | 'unknown', told: Told): Operation {
    Object.assign(operation, { outcome, told, endedAtMs: Date.now() })
    this.#write({ at: operation.endedAtMs, n: operation.n, type: outcome, ...told })
    return operation
  }

  /** What happened that no client did. */
  note(type: string, what: Readonly<Record<string, unknown>>): void {
    this.#write({ at: Date.now(), type, ...what })
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  /** Once the cluster has stopped: until then, its processes write their logs there. */
  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #write(line: Readonly<Record<string, unknown>>): void {
    const text = JSON.stringify(line, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    writeSync(this.#descriptor, `${text}\n`)
  }
}
