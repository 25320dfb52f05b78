import type { PlantedBug } from './planted-bug.ts'
import { END, EXTEND } from './statements.ts'

const GROWTH = 'server/src/gateway/growth.ts'
const CASES = 'test/ledger/growing.test.ts'
const UNANSWERED = 'test/ledger/unanswered.test.ts'
const UNIT = 'server/src/gateway/growth.test.ts'
const OVER_HTTP = 'test/acceptance/models/growing.test.ts'

/** What would let a call that grows hold more than there is, use more than it holds, or keep what it held. */
export const bugsOfGrowth: readonly PlantedBug[] = [
  {
    id: 'growth-added-again',
    title: 'an extension that is sent again adds its total to what is held',
    promise: 'The same step again adds nothing.',
    author: 'insider',
    edits: [{ file: EXTEND, find: 'greatest(0, call_amounts[i] - own.amount)', replace: 'call_amounts[i]' }],
    caughtBy: [
      { file: CASES, title: 'the same or a smaller one again adds nothing' },
      { file: UNANSWERED, title: 'and is granted once' },
    ],
  },
  {
    id: 'tag-is-not-held-as-a-stream-grows',
    title: 'an extension asks the first allowance of the call alone, and no other is told of it',
    promise: 'All or none over the account and every allowance.',
    author: 'blind',
    edits: [
      {
        file: EXTEND,
        find: 'if more > coalesce(fits, 0) and',
        replace: 'if one = own.allowances[1] and more > coalesce(fits, 0) and',
      },
      {
        file: EXTEND,
        find: 'before.amount, item.amount), more',
        replace: 'before.amount, item.amount), case when one = own.allowances[1] then more else 0 end',
      },
    ],
    sql: 'alter table kept_periods drop constraint kept_periods_held_check, drop constraint no_overspend;',
    caughtBy: [{ file: 'test/budgets/growing.test.ts', title: 'ends where the budget of its tag does' }],
  },
  {
    id: 'growth-of-a-batch-unseen',
    title: 'extensions of one batch are each judged by what was free before all of them',
    promise: 'Each is judged against what the ones before it have left.',
    author: 'insider',
    edits: [
      {
        file: EXTEND,
        find: 'account_free[account] := account_free[account] - more;',
        replace: 'update accounts set held = held + more where id = own.account_id;',
      },
    ],
    caughtBy: [{ file: CASES, title: 'is judged in the order of arrival' }],
  },
  {
    id: 'orphans-grow',
    title: 'a call that is taken for an orphan can still be extended by its process',
    promise: 'A call that nobody is known to run grows no more.',
    author: 'insider',
    edits: [{ file: EXTEND, find: ' or own.unsettled_at is not null', replace: '' }],
    caughtBy: [{ file: CASES, title: 'is refused to an orphan' }],
  },
  {
    id: 'growth-gives-back-twice',
    title:
      'the end of a call gives back what it had reserved in windows that are over, of what others have in this one',
    promise: 'What is given back is what the call has reserved there.',
    author: 'insider',
    edits: [
      {
        file: END,
        find: 'call_differences[i] := greatest(0,',
        replace: 'call_differences[i] := (',
      },
    ],
    caughtBy: [{ file: CASES, title: 'are given back without those of others' }],
  },
  {
    id: 'unheard-is-granted',
    title: 'an extension of which nothing was heard until its deadline counts as granted',
    promise: 'A step whose answer is lost counts as not granted.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/calls.ts',
        find: "return { outcome: 'unanswered' }",
        replace: "return { outcome: 'extended', held: extension.amount, reserved: extension.tokens, judgedAt: '' }",
      },
    ],
    caughtBy: [{ file: UNANSWERED, title: 'counts as not granted' }],
  },
  {
    id: 'growth-too-late',
    title: 'more is asked for only when nothing is left',
    promise: 'More is held ahead of what has come.',
    author: 'insider',
    edits: [{ file: GROWTH, find: 'covered - made() < step / 2', replace: 'covered - made() <= 0' }],
    caughtBy: [{ file: UNIT, title: 'before half of the last slice is left' }],
  },
  {
    id: 'growth-without-tokens',
    title: 'a step adds money only: of tokens a minute the first slice alone is reserved',
    promise: 'Each step is granted over balance, budgets and tokens a minute together, or not at all.',
    author: 'blind',
    edits: [{ file: GROWTH, find: 'tokens: next.tokens })', replace: 'tokens: slice.tokens })' }],
    caughtBy: [{ file: UNIT, title: 'where there is no more (tokens_per_minute)' }],
  },
  {
    id: 'growth-charges-the-hold',
    title: 'a stream that is ended for want of money is charged its hold',
    promise: 'You pay the input, and what you were given.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/gateway/relay.ts',
        find: 'ending: endingOf(held(), measured, { forgiven: false, failed })',
        replace: 'ending: { ...endingOf(held(), measured, { forgiven: false, failed }), amount: held().most }',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'openai ends at a limit, is charged what was delivered' }],
  },
  {
    id: 'growth-by-time-of-chunks',
    title: 'time counts only when a chunk arrives, so that silent thinking is not held for',
    promise: 'What is made unseen is held for by time.',
    author: 'blind',
    edits: [
      { file: GROWTH, find: "if (counted.by === 'time') void lookInTime(counted.tokensPerSecond)", replace: '' },
      { file: GROWTH, find: "if (counted.by === 'text') look()", replace: 'look()' },
    ],
    caughtBy: [{ file: UNIT, title: 'also before anything has come' }],
  },
]
