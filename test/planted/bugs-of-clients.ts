import type { PlantedBug } from './planted-bug.ts'

const SEQUENCES = { file: 'test/client/sequences.test.ts', title: 'waits as it is written' }
const RETRY = 'client/src/retry.ts'

/** What would let the client pay twice, or press a gateway that has asked it to wait. */
export const bugsOfClients: readonly PlantedBug[] = [
  {
    id: 'client-repeats-what-was-cut',
    title: 'a call that was cut is sent again without a look at what became of it',
    promise: 'After a timeout or a cut the request is looked up by its key before anything else.',
    author: 'insider',
    edits: [
      {
        file: RETRY,
        find: "isPaid ? { next: 'look up', retryAfterMs: undefined } : repeat('transient', undefined)",
        replace: "repeat('transient', undefined)",
      },
    ],
    caughtBy: [SEQUENCES],
  },
  {
    id: 'client-looks-in-vain',
    title: 'a call that could not be looked up is taken for one that is not there',
    promise: 'A call with an unknown outcome is not replayed.',
    author: 'insider',
    edits: [
      {
        file: 'client/src/send.ts',
        find: "        throw unknownOutcome('It could not be looked up.', { ...known, cause })\n",
        replace: '        return undefined\n',
      },
    ],
    caughtBy: [
      SEQUENCES,
      { file: 'test/client/sequences.test.ts', title: 'whose outcome can not be looked up is not repeated' },
    ],
  },
  {
    id: 'client-repeats-what-was-charged',
    title: 'an error that was charged is taken for one that can be repeated',
    promise: 'An error is not taken for zero debit.',
    author: 'insider',
    edits: [{ file: RETRY, find: '  if (cost !== undefined && cost.nanos !== 0n) return TELL\n', replace: '' }],
    caughtBy: [SEQUENCES],
  },
  {
    id: 'client-comes-too-early',
    title: 'the cap and the jitter of a wait go below Retry-After',
    promise: 'A client waits at least Retry-After.',
    author: 'insider',
    edits: [
      {
        file: RETRY,
        find: 'return Math.max(retryAfterMs, Math.min(LIMITED_MOST_MS, limitedMs * jitter))',
        replace: 'return Math.min(LIMITED_MOST_MS, limitedMs * jitter)',
      },
    ],
    caughtBy: [SEQUENCES],
  },
  {
    id: 'client-takes-unknown-for-an-end',
    title: 'a task whose status is UNKNOWN is taken for one that has ended',
    promise: 'UNKNOWN is not final.',
    author: 'insider',
    edits: [
      {
        file: 'client/src/tasks.ts',
        find: "if (status === 'FAILED' || status === 'CANCELED') throw ended(found)",
        replace: "if (status === 'FAILED' || status === 'CANCELED' || status === 'UNKNOWN') throw ended(found)",
      },
    ],
    caughtBy: [{ file: 'test/client/tasks.test.ts', title: 'does not take UNKNOWN for an end' }],
  },
  {
    id: 'request-of-a-free-key',
    title: 'a call is found by a key that has expired, and is free for another call',
    promise: 'What is found by a key is what a call with that key would meet.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/ledger/requests.ts',
        find: '\n      and (kept_until is null or kept_until > clock_timestamp()) order by',
        replace: ' order by',
      },
    ],
    caughtBy: [{ file: 'test/acceptance/request-by-key.test.ts', title: 'gives nothing once the key is free' }],
  },
  {
    id: 'client-takes-reads-for-free',
    title: 'the fetch of the client takes every GET for free, and sends it without key and cap',
    promise: 'Whatever is no free route can be charged, and has a key and a cap.',
    author: 'insider',
    edits: [
      {
        file: 'client/src/wire.ts',
        find: 'return { isPaid: !isFree,',
        replace: "return { isPaid: !isFree && method !== 'GET',",
      },
    ],
    caughtBy: [{ file: 'test/client/safety.test.ts', title: 'puts a key and the cap on all that is no free route' }],
  },
  {
    id: 'quotes-in-strange-words-are-calls',
    title: 'a quote that is asked for in the words of another gateway is executed and charged',
    promise: 'A free quote never turns into a paid call.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/pipeline.ts',
        find: '      requireOwnWord(request.strange, headerNames)\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: 'test/acceptance/quotes.test.ts', title: 'in the words of another gateway is refused' }],
  },
]
