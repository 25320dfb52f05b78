import type { PlantedBug } from './planted-bug.ts'
import { GROWING, STATEMENTS } from './statements.ts'

const CASES = 'test/ledger/growing.test.ts'
const UNANSWERED = 'test/ledger/unanswered.test.ts'

const GROWTH = 'server/src/gateway/growth.ts'
const UNIT = 'server/src/gateway/growth.test.ts'
const OVER_HTTP = 'test/acceptance/models/growing.test.ts'
const FIT = 'test/acceptance/models/fit.test.ts'

/** What would let a call that grows hold more than there is, or keep what it held. */
export const bugsOfGrowth: readonly PlantedBug[] = [
  {
    id: 'growth-added-again',
    title: 'an extension that is sent again adds its total to what is held',
    promise: 'The same step again adds nothing.',
    author: 'insider',
    edits: [
      {
        file: GROWING,
        find: 'more := greatest(0, call_amounts[i] - own.amount);',
        replace: 'more := call_amounts[i];',
      },
    ],
    caughtBy: [
      { file: CASES, title: 'the same or a smaller one again adds nothing' },
      { file: UNANSWERED, title: 'and is granted once' },
    ],
  },
  {
    id: 'growth-without-allowances',
    title: 'an extension asks the account and no allowance, and the allowance is not told of it',
    promise: 'All or none over the account and every allowance.',
    author: 'insider',
    edits: [
      { file: GROWING, find: 'if more > coalesce(allowance_left, 0) then', replace: 'if false then' },
      {
        file: GROWING,
        find: 'select id, period_start(period, own.begun_at), amount, more from allowances where id = one',
        replace: 'select id, period_start(period, own.begun_at), amount, 0 from allowances where id = one',
      },
    ],
    caughtBy: [{ file: CASES, title: 'is all or none' }],
  },
  {
    id: 'growth-of-a-batch-unseen',
    title: 'extensions of one batch are each judged by what was free before all of them',
    promise: 'Each is judged against what the ones before it have left.',
    author: 'insider',
    edits: [
      {
        file: GROWING,
        find: '        account_free[account] := account_free[account] - more;\n        foreach',
        replace: '        update accounts set held = held + more where id = own.account_id;\n        foreach',
      },
    ],
    caughtBy: [{ file: CASES, title: 'is judged in the order of arrival' }],
  },
  {
    id: 'growth-not-in-the-hold',
    title: 'an extension raises what the account holds and not the hold, so that its end releases too little',
    promise: 'Every way in which a call can end leaves nothing held.',
    author: 'insider',
    edits: [
      { file: GROWING, find: 'update holds set amount = own.amount, tokens', replace: 'update holds set tokens' },
    ],
    caughtBy: [{ file: CASES, title: 'raises what a call holds to a total' }],
  },
  {
    id: 'orphans-grow',
    title: 'a call that is taken for an orphan can still be extended by its process',
    promise: 'A call that nobody is known to run grows no more.',
    author: 'insider',
    edits: [
      {
        file: GROWING,
        find: 'elsif own.owner_id is distinct from owner_id_in or own.unsettled_at is not null then',
        replace: 'elsif own.owner_id is distinct from owner_id_in then',
      },
    ],
    caughtBy: [{ file: CASES, title: 'is refused to an orphan' }],
  },
  {
    id: 'revoked-keys-grow',
    title: 'calls of a key that was revoked go on growing',
    promise: 'A revoked key spends no more than its calls held.',
    author: 'insider',
    edits: [
      {
        file: GROWING,
        find: 'where id = own.credential_id and account_id = own.account_id and active) then',
        replace: 'where id = own.credential_id and account_id = own.account_id) then',
      },
    ],
    caughtBy: [{ file: CASES, title: 'is refused once the key is revoked' }],
  },
  {
    id: 'growth-in-the-period-of-today',
    title: 'an extension counts in the period in which it is made, and its end in the one of its beginning',
    promise: 'A call counts in the period in which it began.',
    author: 'insider',
    edits: [
      {
        file: GROWING,
        find: '(select id, amount, period_start(period, own.begun_at) as starts_at',
        replace: '(select id, amount, period_start(period, at) as starts_at',
      },
      {
        file: GROWING,
        find: 'select id, period_start(period, own.begun_at), amount, more',
        replace: 'select id, period_start(period, at), amount, more',
      },
    ],
    caughtBy: [{ file: CASES, title: 'counts in the period in which the call began' }],
  },
  {
    id: 'growth-gives-back-twice',
    title:
      'the end of a call gives back what it had reserved in windows that are over, of what others have in this one',
    promise: 'What is given back is what the call has reserved there.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: '+ greatest(0, call_input_tokens[1] + call_output_tokens[1] + call_cache_read_tokens[1] + call_cache_write_tokens[1] - own.tokens_moved)',
        replace:
          '+ (call_input_tokens[1] + call_output_tokens[1] + call_cache_read_tokens[1] + call_cache_write_tokens[1] - own.tokens_moved)',
      },
    ],
    caughtBy: [{ file: CASES, title: 'are given back without those of others' }],
  },
  {
    id: 'growth-of-an-ended-window',
    title: 'an extension reserves nothing once the window has turned in which its call was begun',
    promise: 'Tokens count in the window that stands when they are reserved.',
    author: 'insider',
    edits: [
      {
        file: GROWING,
        find: 'has_turned := has_turned or window_started[j] > coalesce(own.reserved_at, own.begun_at);',
        replace: `has_turned := false;
          continue when window_started[j] > coalesce(own.reserved_at, own.begun_at);`,
      },
    ],
    caughtBy: [{ file: CASES, title: 'count in the window that stands then' }],
  },
  {
    id: 'unheard-is-granted',
    title: 'an extension of which nothing was heard until its deadline counts as granted',
    promise: 'A step whose answer is lost counts as not granted.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/calls.ts',
        find: "if (error instanceof Late) return { outcome: 'unanswered' }",
        replace: `const { amount: held, tokens: reserved } = extension
      if (error instanceof Late) return { outcome: 'extended', held, reserved, judgedAt: '' }`,
      },
    ],
    caughtBy: [{ file: UNANSWERED, title: 'counts as not granted' }],
  },
  {
    id: 'fitted-in-silence',
    title: 'a call is held for the limit that fits, and the upstream is sent the one that was asked for',
    promise: 'One number bounds what is held, what is reserved and what is sent.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/anthropic-request.ts',
        find: 'if (isLowered || given === undefined) set.max_tokens',
        replace: 'if (given === undefined) set.max_tokens',
      },
    ],
    caughtBy: [{ file: FIT, title: 'anthropic gets what the balance allows' }],
  },
  {
    id: 'fitted-unasked',
    title: 'every call that does not fit is lowered, whether its caller wants that or not',
    promise: 'A limit is never lowered behind its caller.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/pipeline.ts',
        find: 'if (asked.fit === undefined) return runOnce(asked)',
        replace: '',
      },
      {
        file: 'server/src/gateway/fit.ts',
        find: 'if (fit === undefined || tries >=',
        replace: 'if (fit === null || tries >=',
      },
    ],
    caughtBy: [{ file: FIT, title: 'openai gets what the balance allows' }],
  },
  {
    id: 'growth-passes-all',
    title: 'text passes whether it is held for or not',
    promise: 'No stream goes beyond its hold.',
    author: 'insider',
    edits: [{ file: GROWTH, find: 'return Math.max(0, covered - unseen) * counted.tokenBytes', replace: 'return 1e9' }],
    caughtBy: [
      { file: UNIT, title: 'before half of the last slice is left' },
      { file: OVER_HTTP, title: 'gets no text that is not held for' },
    ],
  },
  {
    id: 'growth-too-late',
    title: 'more is asked for only when nothing is left',
    promise: 'More is held ahead of what has come.',
    author: 'insider',
    edits: [{ file: GROWTH, find: 'covered - made() < step / 2)', replace: 'covered - made() <= 0)' }],
    caughtBy: [{ file: UNIT, title: 'before half of the last slice is left' }],
  },
  {
    id: 'growth-unasked-while-text-waits',
    title: 'nothing is asked for while a frame waits, as long as half of the last slice is left',
    promise: 'No stream waits for what nobody has asked for.',
    author: 'insider',
    edits: [{ file: GROWTH, find: 'waitingSinceMs !== undefined || covered', replace: 'covered' }],
    caughtBy: [{ file: UNIT, title: 'as long as something waits' }],
  },
  {
    id: 'growth-unwaited',
    title: 'a stream is settled while a step of its hold is still asked for',
    promise: 'What is held at the end is known when it is settled.',
    author: 'insider',
    edits: [{ file: GROWTH, find: '        over.abort()\n        await asking\n', replace: '        over.abort()\n' }],
    caughtBy: [{ file: UNIT, title: 'is done when that is answered' }],
  },
  {
    id: 'growth-of-an-upstream-that-runs-on',
    title: 'one route that stops when it is given up is enough for a hold to grow',
    promise: 'A stream that is cut is made no further at the operator’s cost.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/growth-plan.ts',
        find: "profiles.every(({ abort }) => abort === 'stops')",
        replace: 'profiles.length > 0',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'its provider does not stop' }],
  },
  {
    id: 'growth-of-the-unseen-by-text',
    title: 'a hold grows by the text of a model that thinks in hiding',
    promise: 'What can’t be counted as it is made is held for in full, or by time.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/growth-plan.ts',
        find: "profiles.every(({ output }) => output === 'seen')",
        replace: 'profiles.length > 0',
      },
    ],
    caughtBy: [
      { file: OVER_HTTP, title: 'hides what it makes' },
      { file: 'test/acceptance/models/hidden-output.test.ts', title: 'held for in full from the start' },
    ],
  },
  {
    id: 'growth-charges-what-waits',
    title: 'a frame that waits counts as delivered',
    promise: 'Charged is what was delivered.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/withholding-reader.ts',
        find: 'waiting = { frame, json, reading, reported: before }\n',
        replace: "[waiting] = [{ frame, json, reading, reported: before }, text.add(reading.text ?? '')] as const\n",
      },
    ],
    caughtBy: [
      { file: 'server/src/protocols/withholding-reader.test.ts', title: 'than may pass, and the same in the end' },
    ],
  },
  {
    id: 'growth-uncovered',
    title: 'what was reported beyond the hold is not held for at the end',
    promise: 'What is held too late is no loss where the caller has money.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/relay.ts',
        find: '    await growth?.cover(measured.outputTokens ?? 0)\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: 'test/acceptance/models/hidden-output.test.ts', title: 'faster than its route declares' }],
  },
  {
    id: 'growth-in-spite-of-full',
    title: 'a hold grows although the request asks for all of it',
    promise: 'With `full`, an answer that was admitted is never cut for want of money.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/pipeline.ts',
        find: "fit === undefined && (hold ?? caller.holding) === 'growing'",
        replace: "fit === undefined && caller.holding === 'growing'",
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'where the request or its key says so' }],
  },
  {
    id: 'growth-without-tokens',
    title: 'a step adds money only: of tokens a minute the first slice alone is reserved',
    promise: 'Each step is granted over balance, budgets and tokens a minute together, or not at all.',
    author: 'blind',
    edits: [
      {
        file: GROWTH,
        find: 'amount: next.held.most, tokens: next.tokens })',
        replace: 'amount: next.held.most, tokens: slice.tokens })',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'says which it was: tokens_per_minute' }],
  },
  {
    id: 'growth-charges-the-hold',
    title: 'a stream that is ended for want of money is charged its hold',
    promise: 'You pay the input, and what you were given.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/gateway/relay.ts',
        find: 'return { measured, ending: endingOf(held(), measured, { forgiven: false, failed }) }',
        replace:
          'return { measured, ending: { ...endingOf(held(), measured, { forgiven: false, failed }), amount: held().most } }',
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
      {
        file: GROWTH,
        find: "    if (counted.by === 'time') void lookInTime(counted.tokensPerSecond)\n",
        replace: '',
      },
      { file: GROWTH, find: "        if (counted.by === 'text') look()\n", replace: '        look()\n' },
    ],
    caughtBy: [{ file: UNIT, title: 'also before anything has come' }],
  },
  {
    id: 'growth-without-patience',
    title: 'a stream is cut at the first refusal, though others are about to settle',
    promise: 'It waits for two seconds while others settle.',
    author: 'blind',
    edits: [{ file: GROWTH, find: 'short.isFinal || leftMs() <= 0', replace: 'short.isFinal || latest' }],
    caughtBy: [{ file: UNIT, title: 'goes on where others settle while it waits' }],
  },
  {
    id: 'growth-ends-with-an-open-block',
    title: 'a message that is cut ends without the end of its block',
    promise: 'It ends as it would at its output limit.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/protocols/anthropic-end.ts',
        find: "        ...[...open].map((index) => typedFrame({ type: 'content_block_stop', index })),\n",
        replace: '',
      },
    ],
    caughtBy: [{ file: 'server/src/protocols/limit-end.test.ts', title: 'ends the open block of a message' }],
  },
  {
    id: 'growth-ends-one-choice',
    title: 'of several choices only the first is ended',
    promise: 'It ends as it would at its output limit.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/protocols/openai-end.ts',
        find: 'Array.from({ length: choices }, (_, index) => index)',
        replace: '[0].slice(0, choices)',
      },
    ],
    caughtBy: [{ file: 'server/src/protocols/limit-end.test.ts', title: 'ends each choice of a chat' }],
  },
  {
    id: 'growth-told-where-there-is-none',
    title: 'the header says that a hold grows where it is held in full',
    promise: 'An answer whose hold grows says so, and no other.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/gateway/pipeline.ts',
        find: 'if (growth !== undefined) Object.assign(told, {',
        replace: 'Object.assign(told, {',
      },
    ],
    caughtBy: [{ file: OVER_HTTP, title: 'where the request or its key says so' }],
  },
]
