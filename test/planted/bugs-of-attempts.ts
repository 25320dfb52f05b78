import type { PlantedBug } from './planted-bug.ts'

/** Calls that ask more of upstreams than their operation says. */
export const bugsOfAttempts: readonly PlantedBug[] = [
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
    caughtBy: [
      { file: 'test/acceptance/links/refused-tokens.test.ts', title: 'is asked twice and for one refresh by a call' },
      { file: 'test/acceptance/links/refused-tokens.test.ts', title: 'is asked no more when the caller has left' },
    ],
  },
  {
    id: 'refused-twice-and-not-ended',
    title: 'a link whose tokens are refused stays active, so that every call spends a refresh',
    promise: 'One refresh a call, then the link needs renewing.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/links/sessions.ts',
        find: "set ended = coalesce(before.ended, 'revoked')",
        replace: 'set ended = before.ended',
      },
    ],
    caughtBy: [
      { file: 'test/acceptance/links/refused-tokens.test.ts', title: 'is asked twice and for one refresh by a call' },
    ],
  },
  {
    id: 'every-route-is-asked',
    title: 'a model that is too busy is asked for by as many routes as it has',
    promise: 'A call makes no more requests of upstreams than its operation says.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/routing.ts',
        find: ' || asked(before) + asked(sent.attempts) >= requests)',
        replace: ')',
      },
    ],
    caughtBy: [
      {
        file: 'test/acceptance/models/failover.test.ts',
        title: 'makes as many requests as its operation says at the most, though more would be left to ask: openai',
      },
    ],
  },
  {
    id: 'unknown-outcome-told-as-not-sent',
    title: 'a call that may have been done is told as one that was never sent, and SDKs repeat it',
    promise: 'A call whose outcome is unknown says x-should-retry: false.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/judge.ts',
        find: 'return new Fault(CODES[certainty][kind], {',
        replace: "return new Fault(CODES[certainty === 'unknown' ? 'not_sent' : certainty][kind], {",
      },
    ],
    caughtBy: [{ file: 'test/acceptance/idempotency.test.ts', title: 'a call whose outcome is unknown is asked once' }],
  },
]
