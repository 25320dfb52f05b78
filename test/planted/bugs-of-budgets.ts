import type { PlantedBug } from './planted-bug.ts'
import { BEGIN, storedFunction } from './statements.ts'

const BEGIN_STEP = 'server/src/gateway/begin.ts'
const ATTRIBUTION = 'server/src/gateway/attribution.ts'
const BUDGETS_TEST = 'test/budgets/budgets.test.ts'
const NOTICES_TEST = 'test/budgets/notices.test.ts'
const CEILING = 'Charged and held never exceed a budget of any kind.'
const ONCE = 'People are told once a level and period.'

/** Of budgets of all kinds, and of whose spend a call is. */
export const bugsOfBudgets: readonly PlantedBug[] = [
  {
    id: 'workspace-one-hold-of-a-batch',
    title: 'of the keys whose calls begin in one batch, one alone is held against the allowance that they share',
    promise: CEILING,
    author: 'blind',
    edits: [
      {
        file: BEGIN,
        find: 'allowance_amounts[place], allowance_before[place] - allowance_free[place]',
        replace: `allowance_amounts[place], (select sum(call_amounts[one]) from unnest(held_calls) one
        where item.id = any (call_allowances[one]::uuid[]) group by call_credentials[one] limit 1)`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/batches.test.ts', title: 'are all counted, though many belong to one account' }],
  },
  {
    id: 'member-budget-without-grants',
    title: 'what clients of a member spend is not held against its budget',
    promise: CEILING,
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/token-source.ts',
        find: 'k.person_id as member_person,',
        replace: 'null::uuid as member_person,',
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'of a member is one ceiling' }],
  },
  {
    id: 'key-budget-replaced',
    title: 'another budget takes the place of that of the key',
    promise: CEILING,
    author: 'insider',
    edits: [
      {
        file: BEGIN_STEP,
        find: 'allowancesOf(ceilings, caller)',
        replace: "allowancesOf(ceilings.filter(({ kind }) => kind !== 'key' || ceilings.length === 1), caller)",
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'is told with all others that apply' }],
  },
  {
    id: 'tag-that-the-key-fixes-falls-off-at-nine',
    title: 'of more than eight tags the first eight count, those of the request before those that the key fixes',
    promise: 'What a key fixes beats what a request says.',
    author: 'blind',
    edits: [
      { file: ATTRIBUTION, find: 'fixed.length + given.length > TAGS_LIMIT', replace: 'given.length > TAGS_LIMIT' },
      {
        file: ATTRIBUTION,
        find: '[...fixed, ...given].sort',
        replace: '[...given, ...fixed].slice(0, TAGS_LIMIT).sort',
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'is refused with 400 where its tags are wrong' }],
  },
  {
    id: 'end-user-default-copied-at-first-sight',
    title:
      'the amount of everybody is copied for an end user at its first call, and a changed one reaches newcomers alone',
    promise: 'A changed default applies at once to everybody.',
    author: 'blind',
    edits: [
      {
        file: storedFunction('make_allowances'),
        find: 'budget.amount, budget.id',
        replace: 'budget.amount, null::uuid',
      },
    ],
    caughtBy: [{ file: 'test/budgets/beyond-the-limit.test.ts', title: 'is one row: who follows it' }],
  },
  {
    id: 'notice-lost-with-the-last-seconds-of-a-period',
    title:
      'a worker looks at the running period alone: what was passed after the last look of the one before is never told',
    promise: ONCE,
    author: 'blind',
    edits: [
      {
        file: 'server/src/notices/budgets.ts',
        find: 'of states.get(budget.allowanceId) ?? [])',
        replace: 'of (states.get(budget.allowanceId) ?? []).slice(-1))',
      },
    ],
    caughtBy: [{ file: NOTICES_TEST, title: 'is told of the period before too' }],
  },
]
