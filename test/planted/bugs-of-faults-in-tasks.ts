import type { BugOfFaults } from './bugs-of-faults.ts'
import { STATEMENTS } from './statements.ts'

const POLLER = 'server/src/tasks/poller.ts'
const MIGRATION = 'server/src/storage/migrations/0012_tasks.sql'

/** Bugs of calls that go on when they have been answered, by who knows the code and the judge. */
export const bugsOfFaultsInTasks: readonly BugOfFaults[] = [
  {
    id: 'lost-task-created-again',
    title: 'a task is created again where the answer to its creation was lost',
    promise: 'After a doubt an upstream is never asked again to make a task.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/plans/video.ts',
        find: `send: (id, room) =>
        firstToTake(targets, (target) => attempt(id, target, room), mayAskAnother, operation.attempts),`,
        replace: `send: async (id, room) => {
        const ask = () => firstToTake(targets, (target) => attempt(id, target, room), mayAskAnother, operation.attempts)
        const sent = await ask()
        return sent.outcome === 'unknown' ? ask() : sent
      },`,
      },
    ],
    caughtBy: { invariants: ['tasks are created once'], kinds: ['cut upstream'], seconds: 18 },
  },
  {
    id: 'two-pollers-charge',
    title: 'two processes ask for one task at once, and each that hears of its end charges for it',
    promise: 'A task is charged once, however many ask for it.',
    author: 'insider',
    edits: [
      { file: POLLER, find: 'const LEASE_SECONDS = 6', replace: 'const LEASE_SECONDS = 0' },
      {
        file: POLLER,
        find: 'if (!endedNow) return\n',
        replace: `if (!endedNow && ending.amount !== null) {
      const more = 'update accounts set charged = charged + least($1, credited + debt - charged - held) where id = $2'
      await pool.query(more, [ending.amount, accountId])
    }
    if (!endedNow) return
`,
      },
    ],
    caughtBy: { invariants: ['money is conserved'], kinds: ['slow upstream'], seconds: 18 },
  },
  {
    id: 'place-freed-at-hand-over',
    title: 'a task gives up its place among three at once as soon as its upstream has it',
    promise: 'A key has at most three tasks at once.',
    author: 'insider',
    edits: [
      {
        file: MIGRATION,
        find: '  update tasks set\n    upstream_id = upstream,',
        replace:
          "  delete from claims where call_id = task and scope = 'tasks';\n  update tasks set\n    upstream_id = upstream,",
      },
    ],
    caughtBy: { invariants: ['three tasks at once'], kinds: ['slow upstream'], seconds: 12 },
  },
  {
    id: 'place-kept-after-the-end',
    title: 'a task that has ended keeps its place among three at once',
    promise: 'Nothing leaks: what has ended has no place.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: 'delete from claims where ctid = any (claims_ended)',
        replace: "delete from claims where scope <> 'tasks' and ctid = any (claims_ended)",
      },
      {
        file: STATEMENTS,
        find: 'delete from claims where call_id = own.id and',
        replace: "delete from claims where scope <> 'tasks' and call_id = own.id and",
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
