import type { PlantedBug } from './planted-bug.ts'

const MANDATES = 'server/src/gateway/mandates.ts'
const APPROVALS_TEST = 'test/mandates/approvals.test.ts'
const MANDATES_TEST = 'test/mandates/mandates.test.ts'
const EDGES_TEST = 'test/mandates/edges.test.ts'

/** Of mandates and approvals, written by who knows the code and the tests. */
export const bugsOfMandates: readonly PlantedBug[] = [
  {
    id: 'approval-for-all-that-cost-nothing',
    title: 'a call that cost nothing gives its approval back, also where a provider has worked for it',
    promise: 'What a person allows once is done once.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/pipeline.ts',
        find: 'charged === ZERO && wasUnasked(sent)',
        replace: 'charged === ZERO',
      },
    ],
    caughtBy: [{ file: EDGES_TEST, title: 'is for one execution' }],
  },
  {
    id: 'amount-begins-anew',
    title: 'an amount of nothing takes the allowance away, and the next one begins with nothing spent',
    promise: 'Charged and held never exceed what the sentence says.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/mandates.ts',
        find: 'to.amount === ZERO && grant.allowanceId === null',
        replace: 'to.amount === ZERO',
      },
    ],
    caughtBy: [{ file: EDGES_TEST, title: 'counts what was charged before' }],
  },
  {
    id: 'approval-for-other-arguments',
    title: 'an approval is found by its operation, whatever is asked of it',
    promise: 'An approval is for the very call that the person was shown.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/canonical-request.ts',
        find: '[operation.id, model, JSON.stringify(parameters), JSON.stringify(told), sorted(body), bytes]',
        replace: '[operation.id, model, JSON.stringify(told), sorted(body), bytes]',
      },
    ],
    caughtBy: [{ file: APPROVALS_TEST, title: 'is refused for other arguments' }],
  },
  {
    id: 'approval-after-a-price-rise',
    title: 'an approval is good for whatever the call costs by now',
    promise: 'What was approved as the most is never exceeded.',
    author: 'insider',
    edits: [
      {
        file: MANDATES,
        find: "(known.state === 'refused' || known.most >= call.most)",
        replace: "known.state !== 'over'",
      },
    ],
    caughtBy: [{ file: APPROVALS_TEST, title: 'is refused for other arguments' }],
  },
  {
    id: 'limit-for-a-call-forgotten',
    title: 'the limit for a call is compared with a thousandth of its price',
    promise: 'A call above the limit for one needs the person.',
    author: 'insider',
    edits: [{ file: MANDATES, find: 'most > callLimit) return', replace: 'most / 1_000n > callLimit) return' }],
    caughtBy: [{ file: APPROVALS_TEST, title: 'waits for its person' }],
  },
  {
    id: 'consent-unread',
    title: 'a decision counts for what stands in the form, whatever its sentence said',
    promise: 'A person allows what they have read.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/routes/consent.ts',
        find: 'if (!isSeen(form, sealOfDecision(browser, asking, decided)))',
        replace: "if (form.get('seen') === undefined && !isSeen(form, sealOfDecision(browser, asking, decided)))",
      },
    ],
    caughtBy: [{ file: MANDATES_TEST, title: 'counts for the sentence that was shown' }],
  },
  {
    id: 'mandate-of-another',
    title: 'whoever is signed in looks after every mandate',
    promise: 'Only who gave a mandate changes or ends it.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/routes/mandates.ts',
        find: 'grant.personId !== session.personId',
        replace: "session.personId === ''",
      },
    ],
    caughtBy: [{ file: MANDATES_TEST, title: 'is nobody else’s' }],
  },
  {
    id: 'pause-without-the-ledger',
    title: 'a pause is known to processes, and not to BEGIN',
    promise: 'From its commit on, no paid call begins under a mandate that is paused.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/mandates.ts',
        find: 'if (isPaused) return\n    if (allowanceId !== null)',
        replace: "if (isPaused) return\n    if (allowanceId === '')",
      },
    ],
    caughtBy: [{ file: MANDATES_TEST, title: 'is where a refusal leads' }],
  },
]
