import type { PlantedBug } from './planted-bug.ts'
import { STATEMENTS } from './statements.ts'

const OVER_HTTP = 'test/acceptance/models/token-limits.test.ts'

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
    edits: [{ file: STATEMENTS, find: 'row.started_at <= own.begun_at', replace: 'row.started_at <= at' }],
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
        find: '      if (costMode === undefined) requireWithinTokenLimits(plan, windowsOf(request))\n',
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
]
