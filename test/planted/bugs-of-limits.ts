import type { PlantedBug } from './planted-bug.ts'
import { STATEMENTS } from './statements.ts'

const OVER_HTTP = 'test/acceptance/models/token-limits.test.ts'
const KEY_TERMS = 'test/identity/key-terms.slow.test.ts'

/** What would let a key have more tokens in a minute than its limit, or tell it of other numbers than hold. */
export const bugsOfLimits: readonly PlantedBug[] = [
  {
    id: 'usual-output-reserved',
    title: 'a call reserves what answers have as a rule, and not its output limit',
    promise: 'What is reserved and what has settled never exceed the limit at an admission.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/by-token.ts',
        find: 'ask.inputEstimate + ask.outputLimit * ask.choices',
        replace: 'ask.inputEstimate + usual',
      },
    ],
    caughtBy: [
      { file: 'server/src/pricing/by-token.test.ts', title: 'reserves all the output that was asked for' },
      { file: OVER_HTTP, title: 'admit none of three calls at once' },
    ],
  },
  {
    id: 'given-back-to-the-next-window',
    title:
      'a call that ends alone gives back what it reserved to the window that stands, though it was begun in another',
    promise: 'What was reserved is given back in the window in which it was reserved.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: 'row.started_at <= coalesce(own.reserved_at, own.begun_at)',
        replace: 'row.started_at <= at',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'of a call whose window has turned' }],
  },
  {
    id: 'told-as-of-the-beginning',
    title: 'whole answers tell what was left when their call began',
    promise: 'The headers of whole answers are true when the call has ended.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/pipeline.ts',
        find: '    if (left !== null) Object.assign(told, rateHeaders(left))\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'of whole answers are as of the end' }],
  },
  {
    id: 'batch-told-before-its-others',
    title: 'of a batch, only the first call is told what is left; others are told that everything is',
    promise: 'The headers of whole answers are true when the call has ended.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/end-batch.ts',
        find: 'decode(ending, new Row(rows[at]), windows)',
        replace: 'decode(ending, new Row(rows[at]), at === 0 ? windows : new Map())',
      },
    ],
    caughtBy: [{ file: 'test/ledger/windows.test.ts', title: 'is told to every call of a batch' }],
  },
  {
    id: 'too-large-told-to-wait',
    title: 'a call that alone exceeds the limit is told to wait for the end of the window, where it is refused again',
    promise: 'A call that no window admits is refused for good, and counts as a request.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/pipeline.ts',
        find: '        requireWithinTokenLimits(plan, windowsOf(request), caller.limits, first.tokens)\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'counts as a request, reserves nothing' }],
  },
  {
    id: 'withheld-uses-the-minute',
    title: 'an answer that its caller does not get counts with the tokens that it says it used',
    promise: "What is forgiven uses up nobody's minute.",
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/judge.ts',
        find: 'const used = forgiven ? undefined : measured',
        replace: 'const used = measured',
      },
    ],
    caughtBy: [{ file: 'server/src/gateway/judge.test.ts', title: 'an answer that is withheld' }],
  },
  {
    id: 'key-above-its-tier',
    title: 'a key has the rates of its own, also where they are above those of its tier',
    promise: "A key's own rates are never above its tier's.",
    author: 'insider',
    edits: [
      {
        file: 'server/src/catalogue/key-rates.ts',
        find: 'return key === null ? tier : Math.min(tier, key)',
        replace: 'return key ?? tier',
      },
    ],
    caughtBy: [
      { file: 'server/src/catalogue/key-rates.test.ts', title: "is never above its tier's" },
      { file: KEY_TERMS, title: 'where the key has more, or none' },
    ],
  },
  {
    id: 'key-rate-for-each-endpoint',
    title: 'requests of endpoints with a limit of their own have a window of their own in place of that of the key',
    promise: "A key's own requests a minute are those of all endpoints together.",
    author: 'insider',
    edits: [
      {
        file: 'server/src/limits/ask.ts',
        find: '{ group: ALL, seconds: SECONDS, requestLimit: limits.requestsPerMinute',
        replace: "{ group: [ALL, ...names].join(' '), seconds: SECONDS, requestLimit: limits.requestsPerMinute",
      },
    ],
    caughtBy: [
      { file: 'server/src/limits/ask.test.ts', title: "is one window of all the key's requests" },
      { file: KEY_TERMS, title: 'never one more, and never one less' },
    ],
  },
  {
    id: 'short-calls-beside-the-places',
    title: "a key's own limit of calls at once counts those alone that its tier counts",
    promise: "A key's own calls at once are those of every kind together.",
    author: 'insider',
    edits: [
      {
        file: 'server/src/limits/ask.ts',
        find: '  return from !== undefined && from.key.concurrency !== null && !names.some(isOfTasks)\n',
        replace: '  return from === undefined && names.some(isOfTasks)\n',
      },
    ],
    caughtBy: [
      { file: 'server/src/limits/ask.test.ts', title: 'is a place of every call but a task' },
      { file: KEY_TERMS, title: 'are of every kind of call together' },
    ],
  },
  {
    id: 'tier-blamed-for-the-key',
    title: "a refusal for the key's own limit names the tier's, which nobody has to raise",
    promise: 'A refusal says whose limit it was.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/catalogue/key-rates.ts',
        find: '(key[kind] ?? tier[kind]) < tier[kind] ? tier[kind] : undefined',
        replace: '(key[kind] ?? tier[kind]) > tier[kind] ? tier[kind] : undefined',
      },
    ],
    caughtBy: [{ file: KEY_TERMS, title: 'never one more, and never one less' }],
  },
]
