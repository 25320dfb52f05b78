import type pg from 'pg'
import { z } from 'zod'
import { transportFault } from '../gateway/judge.ts'
import { credentialFor } from '../gateway/send.ts'
import type { TaskKind } from '../gateway/task-kind.ts'
import { asUnavailable, Fault } from '../kernel/fault.ts'
import { type Id, isId } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Seal } from '../kernel/seal.ts'
import { costsOf } from '../ledger/requests.ts'
import type { Bindings } from '../upstreams/bindings.ts'
import { type Transport, UpstreamFailure } from '../upstreams/transport.ts'
import { TASK_COLUMNS, type TaskRow, taskResource, taskRow, unknownTask } from './task.ts'

/** What a key does with its own tasks, and with those of others that it may read. Any other is as unknown to it as one that never was. */
export type Tasks = {
  /** How it stands, by its row: no upstream is asked. A fault where its caller looks too often. */
  readonly read: (credentialIds: readonly Id[], id: string) => Promise<SeenTask>
  /** Passes on the wish to end it. Only what its upstream says ends a task; one that has ended stays as it is. */
  readonly cancel: (credentialId: Id, id: string) => Promise<SeenTask>
  /** The newest first, those before a cursor. */
  readonly list: (credentialIds: readonly Id[], page: Page) => Promise<TaskList>
  /** The same of all keys of an account. */
  readonly listOfAccount: (accountId: Id, page: Page) => Promise<TaskList>
}

export type TaskResource = ReturnType<typeof taskResource> | ReturnType<typeof unknownTask>
/** A task as its key sees it, and what it cost; undefined until it has ended. */
export type SeenTask = { readonly resource: TaskResource; readonly cost: Nanos | undefined }
export type Page = { readonly limit: number; readonly before?: Id }
export type TaskList = { readonly tasks: readonly SeenTask[]; readonly next: Id | null }

type Parts = {
  readonly pool: pg.Pool
  readonly bindings: Bindings
  readonly transport: Pick<Transport, 'send'>
  readonly kind: TaskKind
  readonly seal: Seal | null
}

export const TASK_KEPT_SECONDS = 24 * 3_600
const READS_PER_SECOND = 2
/** Polls are counted with them; who has just polled may still cancel. */
const CANCELS_PER_SECOND = 10
const DEADLINES = { connectMs: 5_000, headersMs: 10_000, idleMs: 10_000, totalMs: 10_000 }
const BODY_BYTES = 1_048_576
const COLUMNS = TASK_COLUMNS.join(', ')

export function createTasks({ pool, bindings, transport, kind, seal }: Parts): Tasks {
  async function find(credentialId: Id, id: string, most = READS_PER_SECOND): Promise<TaskRow | undefined> {
    if (!isId(id)) return undefined
    const columns = TASK_COLUMNS.map((name) => `(task_row).${name}`).join(', ')
    const { rows } = await ask(
      pool,
      `select ${columns}, paced from read_task(task => $1, credential => $2, most => $3, kept_seconds => $4)`,
      [id, credentialId, most, TASK_KEPT_SECONDS],
    )
    const [row] = z.array(taskRow.extend({ paced: z.boolean() })).parse(rows)
    if (row?.paced === false) {
      const detail = `Rate limit: poll or cancel a task at most ${most === 1 ? 'once' : `${most} times`} per second. Retry in 1 s.`
      throw new Fault('rate_limit_exceeded', { detail, retryAfterSeconds: 1 })
    }
    return row
  }

  /** What can't be opened is a defect of the installation: nothing was kept without a master key. */
  const shown = (row: TaskRow): TaskResource => {
    if (seal === null) throw new Error('there is no master key, with which tasks were sealed')
    return taskResource(row, kind, seal)
  }

  /** What has ended was settled in the same statement, so that its cost is there. */
  async function seen(rows: readonly TaskRow[]): Promise<readonly SeenTask[]> {
    const ended = rows.filter(({ ended_at }) => ended_at !== null).map(({ id }) => id)
    const costs = await costsOf(pool, ended).catch(asUnavailable)
    return rows.map((row) => ({ resource: shown(row), cost: costs.get(row.id) }))
  }

  async function seenOne(row: TaskRow | undefined, id: string): Promise<SeenTask> {
    const [one] = row === undefined ? [] : await seen([row])
    return one ?? { resource: unknownTask(id), cost: undefined }
  }

  async function read(credentialIds: readonly Id[], id: string): Promise<SeenTask> {
    const owner = credentialIds.length === 1 ? credentialIds[0] : await ownerOf(credentialIds, id)
    return seenOne(owner === undefined ? undefined : await find(owner, id), id)
  }

  /** Which of several keys has a task; undefined where none has. */
  async function ownerOf(credentialIds: readonly Id[], id: string): Promise<Id | undefined> {
    if (!isId(id)) return undefined
    const text = 'select credential_id as id from tasks where id = $1 and credential_id = any ($2::uuid[])'
    const { rows } = await ask(pool, text, [id, credentialIds])
    return z.array(z.object({ id: z.string() })).parse(rows)[0]?.id
  }

  async function cancel(credentialId: Id, id: string): Promise<SeenTask> {
    const row = await find(credentialId, id, CANCELS_PER_SECOND)
    if (row === undefined || row.ended_at !== null) return seenOne(row, id)
    await passOn(row)
    // Its end is asked for at once.
    await ask(pool, 'update tasks set next_poll_at = clock_timestamp() where id = $1 and next_poll_at is not null', [
      id,
    ])
    return seenOne(row, id)
  }

  async function passOn({ id, upstream_id, slot, mode, upstream_task: name }: TaskRow): Promise<void> {
    if (upstream_id === null || slot === null || mode === null || name === null)
      throw new Fault('task_not_cancelable', { detail: 'The provider has not confirmed it yet.' })
    const upstream = await bindings.findOne(slot, mode, upstream_id).catch(asUnavailable)
    if (upstream === undefined)
      throw new Fault('task_not_cancelable', { detail: 'The provider that runs it is no longer set up here.' })
    const headers = {
      accept: 'application/json',
      'x-request-id': id,
      ...credentialFor(upstream, kind.credentialHeader),
    }
    const target = kind.cancelTarget(name)
    const asked = { upstream, method: 'POST' as const, target, headers, body: null }
    const { status } = await transport
      .send({ ...asked, maxBodyBytes: BODY_BYTES, deadlines: DEADLINES })
      .catch((cause: unknown) => {
        if (!(cause instanceof UpstreamFailure)) throw cause
        throw transportFault(upstream.kind, cause)
      })
    if (status === 429) throw new Fault('upstream_rate_limit', { retryAfterSeconds: 1 })
    if (status >= 300) throw new Fault('task_not_cancelable', { detail: 'The provider can cancel only queued tasks.' })
  }

  function list(credentialIds: readonly Id[], page: Page): Promise<TaskList> {
    return credentialIds.length === 1
      ? listOf('credential_id = $1', credentialIds[0], page)
      : listOf('credential_id = any ($1::uuid[])', credentialIds, page)
  }

  async function listOf(isTheirs: string, whose: unknown, { limit, before }: Page): Promise<TaskList> {
    const { rows } = await ask(
      pool,
      `select ${COLUMNS} from tasks
       where ${isTheirs} and ($2::uuid is null or id < $2)
         and coalesce(ended_at > clock_timestamp() - make_interval(secs => $3), true)
       order by id desc limit $4`,
      // One more than is shown tells whether there is more.
      [whose, before ?? null, TASK_KEPT_SECONDS, limit + 1],
    )
    const found = z.array(taskRow).parse(rows)
    const page = found.slice(0, limit)
    return { tasks: await seen(page), next: found.length > limit ? (page.at(-1)?.id ?? null) : null }
  }

  return { read, cancel, list, listOfAccount: (accountId, page) => listOf('account_id = $1', accountId, page) }
}

function ask(pool: pg.Pool, text: string, values: readonly unknown[]): Promise<pg.QueryResult> {
  return pool.query(text, [...values]).catch(asUnavailable)
}
