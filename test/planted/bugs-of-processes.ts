import type { PlantedBug } from './planted-bug.ts'

const ACCOUNTS = 'test/house/account-commands.test.ts'
const WORKER = 'server/src/outbox/worker.test.ts'

/** Beyond begin and end: what goes wrong between processes, commands and upstreams, one of which dies, is late or leaves. */
export const bugsOfProcesses: readonly PlantedBug[] = [
  {
    id: 'lost-fit-is-judged',
    title: 'calls whose statement got no answer are judged at once, beside what may still be carried out',
    promise: 'What may have been carried out is sent again by its id, and never judged beside that.',
    author: 'insider',
    edits: [{ file: 'server/src/calls/fast-path.ts', find: ' && !(answers.error instanceof Unanswered)', replace: '' }],
    caughtBy: [
      {
        file: 'test/ledger/fast-path-edges.test.ts',
        title: 'leave nobody unanswered but whose outcome is unknown',
      },
    ],
  },
  {
    id: 'left-before-the-answer-is-free',
    title: 'who hangs up before the answer begins pays nothing, as if the upstream had failed',
    promise: 'Once a request was sent, who hangs up pays at least its input.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/plans/model.ts',
        find: "sent.outcome === 'not_sent' || !opening.hasLeft()",
        replace: 'sent !== undefined',
      },
    ],
    caughtBy: [
      {
        file: 'test/acceptance/models/on-disconnect.process.test.ts',
        title: 'before its answer begins, and the caller pays the input that was sent',
      },
    ],
  },
  {
    id: 'money-before-its-record',
    title: 'a credit is added in a transaction of its own, before the record of who added it',
    promise: 'A change and its record are both there, or neither is.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/ledger/credit.ts',
        find: 'await creditWithin(query, credit)',
        replace: 'await creditAccount(pool, credit)',
      },
    ],
    caughtBy: [{ file: 'test/ledger/audit.test.ts', title: 'is not moved where it can not be written down' }],
  },
  {
    id: 'credit-reversed-twice',
    title: 'a mistaken credit is taken back under another id each time',
    promise: 'A credit is taken back once, whoever asks and however often.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/ledger/reverse-credit.ts',
        find: "= derivedId('reversal', paymentId)",
        replace: '= crypto.randomUUID()',
      },
    ],
    caughtBy: [
      { file: ACCOUNTS, title: 'takes a mistaken payment back once, and what was spent already is debt' },
      { file: ACCOUNTS, title: 'takes one back once, whoever of several asks first' },
    ],
  },
  {
    id: 'delivered-before-delivery',
    title: 'a message is marked as delivered before it is',
    promise: 'A worker that dies in the middle of a delivery loses nothing.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/outbox/worker.ts',
        find: 'const retries = { ...RETRIES, ...deliverer.retries }',
        replace: 'const retries = { ...RETRIES, ...deliverer.retries }\n    await markDelivered(pool, id)',
      },
    ],
    caughtBy: [{ file: WORKER, title: 'is tried again after a while' }],
  },
]
