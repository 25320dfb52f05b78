import type { PlantedBug } from './planted-bug.ts'

const BEGIN = 'server/src/gateway/begin.ts'
const ACCOUNT_BUDGETS = 'server/src/identity/account-budgets.ts'
const SET_BUDGETS = 'server/src/identity/set-budgets.ts'
const ATTRIBUTION = 'server/src/gateway/attribution.ts'
const BUDGETS_TEST = 'test/budgets/budgets.test.ts'
const NOTICES_TEST = 'test/budgets/notices.test.ts'
const CEILING = 'Charged and held never exceed a budget of any kind.'
const ONCE = 'People are told once a level and period.'

/** Of budgets and whose spend a call is, written by who knows the code and the tests. */
export const bugsOfBudgets: readonly PlantedBug[] = [
  {
    id: 'workspace-budget-forgotten',
    title: 'calls are not held against the budget of their workspace',
    promise: CEILING,
    author: 'insider',
    edits: [
      {
        file: BEGIN,
        find: 'hold: hold && { amount: hold.amount, terms: hold.terms, allowances: allowancesOf(ceilings, caller) },',
        replace:
          "hold: hold && { amount: hold.amount, terms: hold.terms, allowances: allowancesOf(ceilings.filter(({ kind }) => kind !== 'workspace'), caller) },",
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'of a workspace is one ceiling' }],
  },
  {
    id: 'budget-begins-anew',
    title: 'a budget that is removed and set again has nothing counted',
    promise: CEILING,
    author: 'insider',
    edits: [
      {
        file: SET_BUDGETS,
        find: "await query('delete from budgets where id = $1', [id])",
        replace:
          "await query('delete from budgets where id = $1', [id])\n    await query('delete from allowance_periods where allowance_id = $1', [id])",
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'that is set again counts what it counted' }],
  },
  {
    id: 'member-budget-without-grants',
    title: 'what clients of a member spend is not held against its budget',
    promise: CEILING,
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/token-source.ts',
        find: '(select m.id from members m where m.workspace_id = k.workspace_id and m.person_id = k.person_id) as member_id',
        replace: 'null::uuid as member_id',
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'of a member is one ceiling' }],
  },
  {
    id: 'member-budget-without-keys',
    title: 'keys that are assigned to a member are not held against its budget',
    promise: CEILING,
    author: 'insider',
    edits: [
      {
        file: BEGIN,
        find: 'hold: hold && { amount: hold.amount, terms: hold.terms, allowances: allowancesOf(ceilings, caller) },',
        replace:
          "hold: hold && { amount: hold.amount, terms: hold.terms, allowances: allowancesOf(ceilings.filter(({ kind }) => kind !== 'member' || caller.token !== null), caller) },",
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
        file: BEGIN,
        find: 'hold: hold && { amount: hold.amount, terms: hold.terms, allowances: allowancesOf(ceilings, caller) },',
        replace:
          "hold: hold && { amount: hold.amount, terms: hold.terms, allowances: allowancesOf(ceilings.filter(({ kind }) => kind !== 'key' || ceilings.length === 1), caller) },",
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'is told with all others that apply' }],
  },
  {
    id: 'key-raise-not-told',
    title: 'after a raise of a key nobody is told of what is used of it',
    promise: ONCE,
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/keys.ts',
        find: 'if (amount > before) await query(',
        replace: 'if (amount < before) await query(',
      },
    ],
    caughtBy: [{ file: NOTICES_TEST, title: 'of a key is told as well' }],
  },
  {
    id: 'tag-of-the-header-wins',
    title: 'a request can replace the tag that its key fixes',
    promise: 'What a key fixes beats what a request says.',
    author: 'insider',
    edits: [
      {
        file: ATTRIBUTION,
        find: 'return [...fixed, ...given].sort(byName)',
        replace: 'return [...new Map([...fixed, ...read(header)].map((tag) => [tag.name, tag])).values()].sort(byName)',
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'of a tag is one ceiling' }],
  },
  {
    id: 'tag-budget-forgotten-when-tags-are-several',
    title: 'only the first tag of a call is looked at',
    promise: CEILING,
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/ceilings.ts',
        find: 'ceilingsOfCall(budgetsOfCalls, attribution)',
        replace: 'ceilingsOfCall(budgetsOfCalls, { ...attribution, tags: attribution.tags.slice(0, 1) })',
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'of a tag is one ceiling' }],
  },
  {
    id: 'end-user-of-a-session',
    title: 'a person is another end user in every session',
    promise: 'One person is one end user.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/end-user.ts',
        find: 'if (ids === undefined) return { text, label: text }',
        replace: "if (ids === undefined || 'session_id' in ids) return { text, label: text }",
      },
    ],
    caughtBy: [{ file: 'server/src/protocols/end-user.test.ts', title: 'is one person from session to session' }],
  },
  {
    id: 'end-user-in-the-body-unread',
    title: 'an end user that the body names is not looked at',
    promise: CEILING,
    author: 'insider',
    edits: [
      { file: 'server/src/gateway/plans/model.ts', find: 'endUser: endUserIn(body),', replace: 'endUser: undefined,' },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'trap: a second protocol or an agent bypasses it' }],
  },
  {
    id: 'end-users-share-a-budget',
    title: 'what every end user has is one budget for all of them',
    promise: 'Each end user has the default for themselves.',
    author: 'insider',
    edits: [
      {
        file: ACCOUNT_BUDGETS,
        find: 'const allowanceId = allowanceIdOf(accountId, kind, subject, period)',
        replace: "const allowanceId = allowanceIdOf(accountId, kind, kind === 'tag' ? subject : 'all', period)",
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'of every end user is a ceiling for each' }],
  },
  {
    id: 'default-not-followed',
    title: 'who was met before does not follow when the amount of everybody changes',
    promise: CEILING,
    author: 'insider',
    edits: [
      {
        file: SET_BUDGETS,
        find: "    await query('select follow_budget(budget => $1)', [id])\n    // People",
        replace: '    // People',
      },
    ],
    caughtBy: [{ file: BUDGETS_TEST, title: 'of every end user is a ceiling for each' }],
  },
  {
    id: 'too-many-budgets-at-the-call',
    title: 'budgets can be set of which a call would meet more than it may',
    promise: 'What a call can not carry is refused when it is set.',
    author: 'insider',
    edits: [{ file: SET_BUDGETS, find: 'if (most > CEILINGS_LIMIT)', replace: 'if (most > 2 * CEILINGS_LIMIT)' }],
    caughtBy: [{ file: BUDGETS_TEST, title: 'that would make a call count against more than eight' }],
  },
  {
    id: 'budget-beside-an-old-process',
    title: 'a budget can be set while a process runs that does not know of it',
    promise: CEILING,
    author: 'insider',
    edits: [{ file: SET_BUDGETS, find: '    await requireKnown(query)\n', replace: '' }],
    caughtBy: [{ file: 'test/budgets/upgrade.test.ts' }],
  },
  {
    id: 'budget-told-twice',
    title: 'every worker that looks tells of a budget',
    promise: ONCE,
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/budget-notices.ts',
        find: 'where (row.starts_at, row.level) < (excluded.starts_at, excluded.level)',
        replace: 'where (row.starts_at, row.level) <= (excluded.starts_at, excluded.level)',
      },
    ],
    caughtBy: [{ file: NOTICES_TEST, title: 'is told to owners and admins at a half' }],
  },
]
