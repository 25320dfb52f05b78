import type { Kind } from '../faults/plan.ts'
import type { PlantedBug } from './planted-bug.ts'
import { BEGIN, storedFunction } from './statements.ts'

/** A bug that a run of faults has to notice, by an invariant of its own. */
export type BugOfFaults = Omit<PlantedBug, 'caughtBy'> & {
  readonly caughtBy: {
    /** One of these is broken. */
    readonly invariants: readonly string[]
    /** The faults under which it shows; none where the workload is enough. */
    readonly kinds: readonly Kind[]
    readonly seconds: number
  }
}

/** One for an invariant of the judge, by who knows the code and the judge. */
export const bugsOfFaultsByInsiders: readonly BugOfFaults[] = [
  {
    id: 'ambiguous-call-asked-again',
    title: 'an upstream call of which nobody knows whether it was carried out is sent again',
    promise: 'Every charged call has exactly one upstream call that is billed.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/send.ts',
        find: 'export async function sendOnce(',
        replace: `export async function sendOnce(...call: Parameters<typeof sendJustOnce>): Promise<Sent> {
  const sent = await sendJustOnce(...call)
  return sent.outcome === 'unknown' ? sendJustOnce(...call) : sent
}

async function sendJustOnce(`,
      },
    ],
    caughtBy: { invariants: ['one billed upstream call per charge'], kinds: ['cut upstream'], seconds: 8 },
  },
  {
    id: 'limits-per-process',
    title: 'every process counts requests in a window of its own',
    promise: 'A limit is a limit, however many processes there are.',
    author: 'insider',
    edits: [{ file: 'server/src/limits/ask.ts', find: '{ group: ALL,', replace: '{ group: ALL + process.pid,' }],
    caughtBy: { invariants: ['no window is exceeded'], kinds: ['slow edge'], seconds: 12 },
  },
  {
    id: 'revoked-key-begins',
    title: 'the statement that begins calls does not look whether the key is active',
    promise: 'A revoked key starts no paid call from that instant.',
    author: 'insider',
    edits: [
      { file: BEGIN, find: 'item.id and active', replace: 'item.id' },
      // Long enough for callers to try while the cache still knows the key.
      { file: 'server/src/storage/change-feed.ts', find: 'pollMs = 300', replace: 'pollMs = 900' },
    ],
    caughtBy: { invariants: ['revoked keys start nothing'], kinds: ['slow database'], seconds: 15 },
  },
  {
    id: 'key-forgotten-with-its-call',
    title: 'an idempotency key is free again as soon as its call has ended, charged or not',
    promise: 'A key that was sent again after an unknown outcome is charged once.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/idempotency.ts',
        find: 'keepSeconds: KEPT_SECONDS',
        replace: 'keepSeconds: 0 * KEPT_SECONDS',
      },
    ],
    caughtBy: { invariants: ['no call is charged twice'], kinds: ['cut client', 'slow database'], seconds: 10 },
  },
  {
    id: 'answered-before-it-is-settled',
    title: 'the answer does not wait for the settlement, which may fail behind it',
    promise: 'No charge that a caller was told of is lost.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/settle.ts',
        find: 'const settlement = await end(ending)',
        // What a caller would be told if everything went well.
        replace: `const { amount, forgiven } = outcome.ending
    const settlement = { charged: amount === null || forgiven ? ZERO : amount, overrun: ZERO, free: ZERO, rates: null }
    void end(ending).catch(() => {})`,
      },
    ],
    caughtBy: {
      // A charge that was told and is given back is not there yet, or never.
      invariants: ['no acknowledged charge is lost', 'money is conserved'],
      // One stall that is longer than a caller waits for its settlement, and room for it.
      kinds: ['stall database', 'slow client', 'slow upstream', 'slow client', 'slow upstream', 'slow client'],
      seconds: 30,
    },
  },
  {
    id: 'embeddings-charged-twice',
    title: 'the input of an embedding is charged once as such and once more as the total',
    promise: 'Each token is charged once, in its own class.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-embeddings.ts',
        find: '{ ...reported, output: 0 }',
        replace: '{ ...reported, ...(reported.input && { input: 2 * reported.input }), output: 0 }',
      },
    ],
    caughtBy: { invariants: ['models cost what was used'], kinds: ['slow upstream'], seconds: 12 },
  },
  {
    id: 'lost-task-created-again',
    title: 'a task is created again where the answer to its creation was lost',
    promise: 'After a doubt an upstream is never asked again to make a task.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/plans/video.ts',
        find: 'mayAskAnother, operation.attempts),',
        replace: `mayAskAnother, operation.attempts).then((sent) =>
          sent.outcome === 'unknown'
            ? firstToTake(targets, (target) => attempt(id, target, room), mayAskAnother, operation.attempts)
            : sent,
        ),`,
      },
    ],
    caughtBy: { invariants: ['tasks are created once'], kinds: ['cut upstream'], seconds: 18 },
  },
  {
    id: 'place-freed-at-hand-over',
    title: 'a task gives up its place among three at once as soon as its upstream has it',
    promise: 'A key has at most three tasks at once.',
    author: 'insider',
    edits: [
      {
        file: storedFunction('hand_over_task'),
        find: 'update holds set',
        replace: "delete from claims where call_id = task and scope = 'tasks';\n  update holds set",
      },
    ],
    caughtBy: { invariants: ['three tasks at once'], kinds: ['slow upstream'], seconds: 12 },
  },
  {
    id: 'failed-task-charged',
    title: 'a task that failed costs all that was held for it',
    promise: 'A task that failed costs nothing.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/tasks/settle.ts',
        find: "if (state === 'FAILED') return { amount: null,",
        replace: "if (state === 'FAILED') return { amount: mostFor(terms, most),",
      },
    ],
    caughtBy: { invariants: ['tasks cost what was made'], kinds: ['slow upstream'], seconds: 12 },
  },
]
