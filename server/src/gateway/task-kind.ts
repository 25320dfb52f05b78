import type { Id } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Counts, Terms } from '../pricing/terms.ts'
import type { TaskReport } from '../protocols/task.ts'
import type { TaskResult } from '../storage/task-results.ts'
import type { CredentialHeader } from './send.ts'

/** What only its operation knows of a task: how an upstream is asked for it, what it used, and what it made. */
export type TaskKind = {
  /** The header in which upstreams take our credential. */
  readonly credentialHeader: CredentialHeader
  readonly taskTarget: (name: string) => string
  readonly cancelTarget: (name: string) => string
  /** Undefined where the answer is none about this task. */
  readonly reportIn: (json: unknown, name: string) => ReportedTask | undefined
  /** What the caller is told of one that has succeeded, by its row: members beside those that every task has. */
  readonly made: (row: SucceededRow, seal: Pick<Seal, 'open'>) => MadeMembers
}

export type ReportedTask = TaskReport<Made, Used>

type Used = {
  /** What was used of what was held for; undefined where nobody can know. */
  readonly counts: (held: HeldFor) => Counts | undefined
}

type Made = Used & {
  /** What is kept of it for its caller. */
  readonly result: (id: Id, held: HeldFor, seal: Seal) => TaskResult
}

/** The prices that were kept when a task began, and the most that it could use of each. */
export type HeldFor = { readonly terms: Terms; readonly most: Counts }

/** With the columns of its result. */
export type SucceededRow = { readonly id: Id; readonly prompt: Buffer | null; readonly [column: string]: unknown }

export type MadeMembers = {
  readonly output: Readonly<Record<string, unknown>>
  readonly usage: Readonly<Record<string, unknown>>
}
