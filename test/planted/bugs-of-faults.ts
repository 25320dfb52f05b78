import type { Kind } from '../faults/plan.ts'
import type { PlantedBug } from './planted-bug.ts'
import { BEGINNING, SWEEPING } from './statements.ts'

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

/** Where calls of dead processes are marked. */
const MARKS = 'server/src/storage/migrations/0012_tasks.sql'
const PIPELINE = 'server/src/gateway/pipeline.ts'
const SETTLES = 'const settlement = await end(ending)'
/** What a caller would be told if everything went well. */
const ANSWERS_FIRST = `const { amount, forgiven } = outcome.ending
    const settlement = { charged: amount === null || forgiven ? ZERO : amount, free: ZERO }`
/** One stall that is longer than a caller waits for its settlement, and room for it. */
const LONG_STALL = {
  kinds: ['stall database', 'slow client', 'slow upstream', 'slow client', 'slow upstream', 'slow client'] as const,
  seconds: 30,
}

/** Written by who knows the code and the judge. */
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
    id: 'refused-token-replaced-for-ever',
    title: 'a call whose token is refused takes another one for as long as the platform issues them',
    promise: 'One refresh a call, then the link needs renewing.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/plans/data.ts',
        find: 'access = await links.another(session, access, left)',
        replace: 'access = await links.another(session, access, { id, ...operation.attempts })',
      },
    ],
    caughtBy: { invariants: ['no call asks more than its operation says'], kinds: ['slow edge'], seconds: 12 },
  },
  {
    id: 'limits-per-process',
    title: 'every process counts requests in a window of its own',
    promise: 'A limit is a limit, however many processes there are.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/limits/ask.ts',
        find: '{ group: ALL, seconds: SECONDS,',
        replace: '{ group: ALL + process.pid, seconds: SECONDS,',
      },
    ],
    caughtBy: { invariants: ['no window is exceeded'], kinds: ['slow edge'], seconds: 12 },
  },
  {
    id: 'changes-not-heard',
    title: 'a cached value is not dropped when the change log names it',
    promise: 'A change of a price, a key or a limit is known everywhere a second later.',
    author: 'insider',
    edits: [{ file: 'server/src/storage/cache.ts', find: '    changed: forget,', replace: '    changed: () => {},' }],
    caughtBy: { invariants: ['a new price is known in time'], kinds: ['slow database'], seconds: 15 },
  },
  {
    id: 'revoked-key-begins',
    title: 'the statement that begins calls does not look whether the key is active',
    promise: 'A revoked key starts no paid call from that instant.',
    author: 'insider',
    edits: [
      {
        file: BEGINNING,
        find: 'from credentials where id = credentials_in[1] and active',
        replace: 'from credentials where id = credentials_in[1]',
      },
      {
        file: BEGINNING,
        find: 'from credentials where id = item.id and active',
        replace: 'from credentials where id = item.id',
      },
      // Long enough for callers to try while the cache still knows the key.
      { file: 'server/src/storage/change-feed.ts', find: 'pollMs = 300', replace: 'pollMs = 900' },
    ],
    caughtBy: { invariants: ['revoked keys start nothing'], kinds: ['slow database'], seconds: 15 },
  },
  {
    id: 'sweeper-takes-the-living',
    title: 'calls are taken for orphans although their process has its lease',
    promise: 'A call is unsettled only where nobody can know what became of it.',
    author: 'insider',
    edits: [
      { file: SWEEPING, find: 'where owners.lease_until < at limit', replace: 'limit' },
      {
        file: MARKS,
        find: 'when of is null then owner_id is not null and not exists (select from owners where owners.id = holds.owner_id and lease_until >= at)',
        replace: 'when of is null then true',
      },
    ],
    caughtBy: { invariants: ['unsettled only for a reason'], kinds: ['slow upstream'], seconds: 18 },
  },
  {
    id: 'key-forgotten-with-its-call',
    title: 'an idempotency key is free again as soon as its call has ended, charged or not',
    promise: 'A key that was sent again after an unknown outcome is charged once.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/idempotency.ts',
        find: 'fingerprint: digest,\n      keepSeconds: KEPT_SECONDS,',
        replace: 'fingerprint: digest,\n      keepSeconds: 0 * KEPT_SECONDS,',
      },
    ],
    caughtBy: { invariants: ['no call is charged twice'], kinds: ['cut client', 'slow database'], seconds: 10 },
  },
  {
    id: 'settlement-queued-behind-the-answer',
    title: 'settlements wait in a queue behind the answer, and a graceful stop does not write what is in it',
    promise: 'trap 17: no graceful shutdown drops queued spend.',
    author: 'insider',
    edits: [
      {
        file: PIPELINE,
        find: SETTLES,
        replace: `${ANSWERS_FIRST}
    setTimeout(() => void end(ending), 10_000).unref()`,
      },
      {
        file: 'server/src/calls/calls.ts',
        find: 'while (open.size > 0 && clock.monotonicMs() < deadlineAtMs) await clock.sleep(LOOK_MS)',
        replace: 'if (clock.monotonicMs() < deadlineAtMs) await clock.sleep(LOOK_MS)',
      },
    ],
    caughtBy: { invariants: ['unsettled only for a reason'], kinds: ['restart gateway'], seconds: 12 },
  },
  {
    id: 'answered-before-it-is-settled',
    title: 'the answer does not wait for the settlement, which may fail behind it',
    promise: 'No charge that a caller was told of is lost.',
    author: 'insider',
    edits: [
      {
        file: PIPELINE,
        find: SETTLES,
        replace: `${ANSWERS_FIRST}
    void end(ending).catch(() => {})`,
      },
    ],
    caughtBy: {
      // A charge that was told and is given back is not there yet, or never.
      invariants: ['no acknowledged charge is lost', 'money is conserved'],
      ...LONG_STALL,
    },
  },
  {
    id: 'failed-settlement-charged',
    title: 'a call whose caller was told that it could not be settled is charged all the same, a little later',
    promise: 'Who is told that nothing was charged is not charged.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/calls.ts',
        find: 'settleInBackground({ ...ending, forgiven: true })',
        replace: 'settleInBackground(ending)',
      },
    ],
    caughtBy: { invariants: ['no acknowledged charge is lost'], ...LONG_STALL },
  },
  {
    id: 'broken-off-stream-free',
    title: 'what a stream reports as it goes is forgotten where it breaks off before its end',
    promise: 'What was delivered of a stream that breaks off is charged.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/gemini-reply.ts',
        find: '...classesOf(counts), ...soundTokensOf',
        replace: '...classesOf(isStopped ? counts : NONE), ...soundTokensOf',
      },
    ],
    caughtBy: { invariants: ['models cost what was used'], kinds: ['cut upstream'], seconds: 12 },
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
    id: 'picture-of-another-size',
    title: 'a picture is charged at the price of the size and quality that an upstream would choose',
    promise: 'A picture costs what its own size and quality cost.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/by-image.ts',
        find: 'const rate = images.get(kind)',
        replace: "const rate = images.get(kind) && images.get('auto/auto')",
      },
    ],
    caughtBy: { invariants: ['models cost what was used'], kinds: ['slow upstream'], seconds: 12 },
  },
]
