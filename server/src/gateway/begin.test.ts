import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testCaller } from '../../../harness/test-caller.ts'
import type { Ceiling } from '../budgets/account-budgets.ts'
import type { Begun, Call, Claim, Judgement, Refused } from '../calls/call.ts'
import { type KeyRates, limitsWithin } from '../catalogue/key-rates.ts'
import { TIERS } from '../catalogue/tiers.ts'
import type { TokenAccess } from '../identity/credential.ts'
import { scopesIn } from '../identity/scopes.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createIds, type Id } from '../kernel/ids.ts'
import { nanos, ZERO } from '../kernel/money.ts'
import type { Period } from '../kernel/period.ts'
import { askOf } from '../limits/ask.ts'
import { createSpentWindows } from '../limits/spent-windows.ts'
import type { Rates } from '../limits/window.ts'
import type { MoneyAdvice } from '../wording/money-advice.ts'
import { ClaimTaken, createBegin, type Wish } from './begin.ts'

const ids = createIds({ clock: systemClock })
const NOW_MS = 1_000_000
const time = { nowMs: () => NOW_MS }
const LIMITS = ['tokens'] as const
const [WINDOW] = askOf(TIERS.free, LIMITS).windows

const RATES: Rates = {
  requests: { limit: 60, left: 12, resetAtMs: NOW_MS + 30_000 },
  tokens: { limit: 60_000, left: 300, resetAtMs: NOW_MS + 40_000 },
}
const HEADERS = {
  'X-RateLimit-Limit-Requests': '60',
  'X-RateLimit-Remaining-Requests': '12',
  'X-RateLimit-Reset-Requests': '1030',
  'X-RateLimit-Limit-Tokens': '60000',
  'X-RateLimit-Remaining-Tokens': '300',
  'X-RateLimit-Reset-Tokens': '1040',
}

type Setting = {
  readonly reservedTokens?: (credentialId: Id, windowEndsAtMs: number) => number
  readonly rates?: Rates
  readonly testCredit?: Parameters<typeof createBegin>[0]['testCredit']
}

const NONE_GIVEN = { isKnownGiven: () => true, refill: async () => false }

/** A way to begin calls that PostgreSQL judges as the test says, with what it was asked. */
function createHouse(
  verdict: Begun | Refused,
  { reservedTokens = () => 0, rates = RATES, testCredit = NONE_GIVEN }: Setting = {},
) {
  const asked: Call[] = []
  const spent = createSpentWindows({ time, maxCredentials: 10 })
  const judgement: Judgement = { ...verdict, free: nanos(5_000n), judgedAt: '', rates }
  const calls = {
    reservedTokens,
    async begin(call: Call) {
      asked.push(call)
      return judgement
    },
  }
  return { begin: createBegin({ calls, spent, time, testCredit }), asked, spent, judgement }
}

const operation = { id: 'chat', limits: LIMITS }
const HOLD = { amount: nanos(7_000n), terms: 'the terms' }

const wishOf = (changes: Partial<Wish> = {}): Wish => ({
  id: ids.next(),
  caller: testCaller(),
  operation,
  hold: HOLD,
  tokens: 1_000,
  claims: [],
  ...changes,
})

/** What a caller is told whom PostgreSQL refuses so, with a window that ends then, and so many tokens reserved by calls that run here. */
async function refusalOf(
  outcome: 'requests_spent' | 'tokens_spent',
  { endsAtMs, left = 0, reserved = 0, tokens = 1_000 }: Refusing,
): Promise<Fault> {
  assert.ok(WINDOW !== undefined)
  const caller = testCaller()
  const rate = { limit: 60_000, left, resetAtMs: endsAtMs }
  const { begin } = createHouse(
    { outcome, window: WINDOW },
    {
      rates: { requests: { ...rate, limit: 60 }, tokens: rate },
      reservedTokens: (of, windowEndsAtMs) =>
        of === caller.credentialId && windowEndsAtMs === endsAtMs ? reserved : 0,
    },
  )
  const wish = wishOf({ caller, hold: null, tokens })
  const [first, again] = [await thrownBy(() => begin(wish)), await thrownBy(() => begin(wish))]
  assert.deepEqual([again.message, again.retryAfterSeconds], [first.message, first.retryAfterSeconds])
  return first
}

type Refusing = {
  readonly endsAtMs: number
  readonly left?: number
  readonly reserved?: number
  readonly tokens?: number
}

async function thrownBy(work: () => Promise<unknown>): Promise<Fault> {
  const fault = await work().catch((thrown: unknown) => thrown)
  assert.ok(fault instanceof Fault)
  return fault
}

/** An access token of a grant that may do so much. */
const MANDATE = { callLimit: null, asksHighCost: false, isPaused: false }
const token = (access: Partial<TokenAccess>): TokenAccess => ({
  mayCall: true,
  mayReadAccount: true,
  mandate: MANDATE,
  ...access,
})

describe('what is asked of PostgreSQL before a call', () => {
  const { windows, slots } = askOf(TIERS.free, ['concurrency'])
  const claim = {
    scope: 'idempotency',
    key: 'k',
    limit: 1,
    fingerprint: 'f',
    keepSeconds: 1,
    endsWithOwner: false,
  }
  const counted = { id: 'chat', limits: ['concurrency'] } as const

  it('is its money, its windows and its places at once, with what it claims beside its limits', async () => {
    const { begin, asked, judgement } = createHouse({ outcome: 'begun' })
    const caller = testCaller({ allowances: [ids.next()] })
    const task = { model: 'm', prompt: Buffer.from('p') }
    const wish = wishOf({ caller, operation: counted, claims: [claim], task })
    assert.equal(await begin(wish), judgement)
    assert.deepEqual(asked, [
      {
        id: wish.id,
        accountId: caller.accountId,
        credentialId: caller.credentialId,
        operation: 'chat',
        hold: { ...HOLD, allowances: caller.allowances, own: undefined },
        tokens: 1_000,
        windows,
        claims: [...slots, claim],
        task,
        attribution: undefined,
      },
    ])
    assert.equal(slots.length, 1)
  })

  it('is held in the budgets of the call, where it has others than its key', async () => {
    const { begin, asked } = createHouse({ outcome: 'begun' })
    const caller = testCaller({ allowances: [ids.next()] })
    const ceilings = [ids.next(), ids.next()].map((allowanceId) => ({ ...ceilingOf('tag', 'run=1'), allowanceId }))
    await begin(wishOf({ caller, ceilings }))
    assert.deepEqual(
      asked.map(({ hold }) => hold?.allowances),
      [ceilings.map(({ allowanceId }) => allowanceId)],
    )
  })

  it('says which budget is of the key itself, where it has one', async () => {
    const { begin, asked } = createHouse({ outcome: 'begun' })
    const allowances = [ids.next(), ids.next()]
    const budget = { period: 'day', amount: nanos(1n) } as const
    await begin(wishOf({ caller: testCaller({ allowances, budget }) }))
    await begin(wishOf({ caller: testCaller({ allowances, budget: null }) }))
    assert.deepEqual(
      asked.map(({ hold }) => hold?.own),
      [allowances[0], undefined],
    )
  })

  it('is no place where nothing is held, but what it claims all the same', async () => {
    const { begin, asked } = createHouse({ outcome: 'begun' })
    await begin(wishOf({ operation: counted, hold: null }))
    await begin(wishOf({ operation: counted, hold: null, claims: [claim] }))
    await begin(wishOf({ operation: counted }))
    assert.deepEqual(
      asked.map(({ hold, claims }) => [hold?.amount, claims]),
      [
        [undefined, []],
        [undefined, [claim]],
        [7_000n, slots],
      ],
    )
  })
})

describe('who may begin a call', () => {
  const refused = async (wish: Wish) => {
    const { begin, asked } = createHouse({ outcome: 'begun' })
    const { code } = await thrownBy(() => begin(wish))
    assert.deepEqual(asked, [], 'PostgreSQL is not asked')
    return code
  }
  const begins = (wish: Wish) => createHouse({ outcome: 'begun' }).begin(wish)

  it('is who has a scope for it', async () => {
    const scopes = scopesIn(['search'])
    assert.equal(await refused(wishOf({ caller: testCaller({ scopes }) })), 'forbidden')
    assert.equal(await refused(wishOf({ caller: testCaller({ token: token({ mayCall: false }) }) })), 'forbidden')
  })

  it('is everybody for what concerns the key itself, whatever its scopes', async () => {
    const own = { ...operation, isForAll: true }
    const scopes = scopesIn(['search'])
    await begins(wishOf({ operation: own, caller: testCaller({ scopes }) }))
    const reader = testCaller({ token: token({ mayCall: false }) })
    await begins(wishOf({ operation: own, caller: reader, hold: null }))
    const stranger = testCaller({ token: token({ mayCall: false, mayReadAccount: false }) })
    assert.equal(await refused(wishOf({ operation: own, caller: stranger, hold: null })), 'forbidden')
  })

  it('is who may pay: an access token without an amount begins only what costs nothing', async () => {
    const caller = testCaller({ token: token({}) })
    assert.equal(await refused(wishOf({ caller })), 'budget_required')
    await begins(wishOf({ caller, hold: null }))
    await begins(wishOf({ caller, hold: { ...HOLD, amount: ZERO } }))
  })
})

describe('a window whose requests are spent', () => {
  assert.ok(WINDOW !== undefined)
  const spentRates = { ...RATES, requests: { limit: 60, left: 0, resetAtMs: NOW_MS + 30_000 } }

  it('is remembered for the credential, and answers the next call without PostgreSQL', async () => {
    const { begin, asked } = createHouse({ outcome: 'requests_spent', window: WINDOW }, { rates: spentRates })
    const caller = testCaller()
    const [first, again] = [
      await thrownBy(() => begin(wishOf({ caller }))),
      await thrownBy(() => begin(wishOf({ caller }))),
    ]
    assert.equal(asked.length, 1)
    for (const fault of [first, again]) {
      assert.deepEqual(
        [fault.code, fault.retryAfterSeconds, fault.members, fault.headers['X-RateLimit-Remaining-Requests']],
        ['rate_limit_exceeded', 30, { limited_by: 'tier' }, '0'],
      )
      assert.match(fault.message, /requests per 60 seconds\. Retry in 30 s\.$/)
    }
    await thrownBy(() => begin(wishOf()))
    assert.equal(asked.length, 2, 'another credential has its own')
  })

  it('is not what tokens that are spent are remembered as', async () => {
    const { begin, asked } = createHouse({ outcome: 'tokens_spent', window: WINDOW }, { rates: spentRates })
    const caller = testCaller()
    for (const _ of [1, 2]) await thrownBy(() => begin(wishOf({ caller })))
    assert.equal(asked.length, 2)
  })

  it('may end a second from now where nobody has said when it does', async () => {
    const noRates = { requests: null, tokens: null }
    for (const outcome of ['requests_spent', 'tokens_spent'] as const) {
      const { begin } = createHouse({ outcome, window: WINDOW }, { rates: noRates })
      const fault = await thrownBy(() => begin(wishOf()))
      assert.deepEqual([fault.retryAfterSeconds, fault.headers], [1, {}])
    }
  })
})

describe('a place that another call has', () => {
  const claim = (changes: Partial<Claim> = {}): Claim => ({
    scope: 'concurrency',
    key: 'all',
    limit: 5,
    fingerprint: '',
    keepSeconds: 0,
    endsWithOwner: true,
    ...changes,
  })
  const taken = (of: Claim, outcome: 'claim_taken' | 'claim_differs' = 'claim_taken') =>
    createHouse({ outcome, claim: of, holder: 'the other' })

  it('is told to the caller as its limit, with when to try again: a call ends sooner than a task', async () => {
    const call = await thrownBy(() => taken(claim()).begin(wishOf()))
    assert.deepEqual(
      [call.code, call.retryAfterSeconds, call.members, call.headers],
      ['rate_limit_exceeded', 1, { limited_by: 'tier' }, HEADERS],
    )
    assert.match(call.message, /5 of 5 calls running\. Retry in 1 s\.$/)
    const video = claim({ scope: 'tasks', key: 'video', limit: 3, endsWithOwner: false })
    const task = await thrownBy(() => taken(video).begin(wishOf()))
    assert.deepEqual([task.retryAfterSeconds, task.members], [5, { limited_by: 'endpoint' }])
    assert.match(task.message, /3 of 3 tasks running\. Retry in 5 s\.$/)
  })

  it('is a limit of the caller’s, whatever the request is that has it', async () => {
    const fault = await thrownBy(() => taken(claim(), 'claim_differs').begin(wishOf()))
    assert.deepEqual([fault.code, fault.retryAfterSeconds], ['rate_limit_exceeded', 1])
  })

  for (const [outcome, differs] of [
    ['claim_taken', false],
    ['claim_differs', true],
  ] as const)
    it(`is told to who asks on its behalf where it claimed it beside its limits: ${outcome}`, async () => {
      const own = claim({ scope: 'quote', key: 'q', limit: 1 })
      const thrown = await taken(own, outcome)
        .begin(wishOf({ claims: [claim({ key: 'another' }), own] }))
        .catch((error: unknown) => error)
      assert.ok(thrown instanceof ClaimTaken)
      const { holder, headers } = thrown
      assert.equal(thrown.claim, own)
      assert.deepEqual([holder, thrown.differs, headers], ['the other', differs, HEADERS])
    })
})

describe('a limit of the key’s own', () => {
  assert.ok(WINDOW !== undefined)
  const [slot] = askOf(TIERS.free, ['concurrency']).slots
  assert.ok(slot !== undefined)
  const NONE = { requestsPerMinute: null, tokensPerMinute: null, concurrency: null }

  for (const [kind, verdict] of [
    ['requestsPerMinute', { outcome: 'requests_spent', window: WINDOW }],
    ['tokensPerMinute', { outcome: 'tokens_spent', window: WINDOW }],
    ['concurrency', { outcome: 'claim_taken', claim: slot, holder: null }],
  ] as const)
    it(`is told as such, with what its tier allows, and no other limit is: ${kind}`, async () => {
      const refusedWith = (rates: Partial<KeyRates>) => {
        const caller = testCaller({ limits: limitsWithin(TIERS.free, { ...NONE, ...rates }) })
        return thrownBy(() => createHouse(verdict).begin(wishOf({ caller })))
      }
      const own = await refusedWith({ [kind]: 1 })
      assert.deepEqual(own.members, { limited_by: 'key' })
      assert.match(own.message, new RegExp(`its tier allows ${TIERS.free[kind].toLocaleString('en-US')}\\)`))
      const others = await refusedWith({ requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1, [kind]: null })
      assert.deepEqual(others.members, { limited_by: 'tier' })
    })
})

const BUDGET = { amount: nanos(9_000n), period: 'day' } as const
const ceilingOf = (kind: Ceiling['kind'], subject: string | null): Ceiling => ({
  allowanceId: 'a',
  kind,
  subject,
  budget: BUDGET,
})

describe('a call that there is no money for', () => {
  const advice: MoneyAdvice = (left) => ({ words: `With ${left} it would fit.`, members: { fitting_output_limit: 3 } })
  const amounts = { needed_usd: '0.000007000', fitting_output_limit: 3 }

  it('is told what it needs, what the account has, and what would fit', async () => {
    const { begin } = createHouse({ outcome: 'money_spent' })
    const fault = await thrownBy(() => begin(wishOf({ moneyAdvice: advice })))
    assert.deepEqual(
      [fault.code, fault.members, fault.headers],
      ['insufficient_balance', { ...amounts, left_usd: '0.000005000' }, HEADERS],
    )
    assert.match(fault.message, /With 5000 it would fit\./)
  })

  it('is begun once more in test mode, where the account is given what is short', async () => {
    const refills: [Id, bigint][] = []
    const refill = async (accountId: Id, short: bigint) => refills.push([accountId, short]) > 0
    const testCredit = { isKnownGiven: () => false, refill }
    const { begin, asked } = createHouse({ outcome: 'money_spent' }, { testCredit })
    const caller = testCaller({ mode: 'test' })
    const fault = await thrownBy(() => begin(wishOf({ caller })))
    assert.equal(fault.code, 'insufficient_balance', 'it is not refilled twice')
    assert.deepEqual(refills, [[caller.accountId, 2_000n]])
    assert.deepEqual([asked.length, asked[0]], [2, asked[1]], 'the same call')
  })

  it('is refused at once in live mode, where the day’s is given, and where it would not do', async () => {
    const [live, test] = [testCaller({ mode: 'live' }), testCaller({ mode: 'test' })]
    const refill = async () => true
    for (const [caller, testCredit] of [
      [live, { isKnownGiven: () => false, refill }],
      [test, { isKnownGiven: () => true, refill }],
      [test, { isKnownGiven: () => false, refill: async () => false }],
    ] as const) {
      const { begin, asked } = createHouse({ outcome: 'money_spent' }, { testCredit })
      assert.equal((await thrownBy(() => begin(wishOf({ caller })))).code, 'insufficient_balance')
      assert.equal(asked.length, 1)
    }
  })

  it('is told that PostgreSQL can’t be asked, where the test money can’t be given', async () => {
    const testCredit = { isKnownGiven: () => false, refill: () => Promise.reject(new Error('down')) }
    const { begin } = createHouse({ outcome: 'money_spent' }, { testCredit })
    const fault = await thrownBy(() => begin(wishOf({ caller: testCaller({ mode: 'test' }) })))
    assert.equal(fault.code, 'billing_dependency_timeout')
  })

  it('is not told what the account has by a token that may not read it', async () => {
    const caller = testCaller({ token: token({ mayReadAccount: false }), budget: BUDGET })
    const { begin } = createHouse({ outcome: 'money_spent' })
    const fault = await thrownBy(() => begin(wishOf({ caller })))
    assert.deepEqual(fault.members, { needed_usd: '0.000007000' })
  })

  it('is told what its budget has left, and when there is more', async () => {
    const { begin } = createHouse({
      outcome: 'allowance_spent',
      allowanceId: 'a',
      left: nanos(2_000n),
      refusing: ['a'],
    })
    const caller = testCaller({ budget: BUDGET, ceilings: [ceilingOf('key', null)] })
    const fault = await thrownBy(() => begin(wishOf({ caller, moneyAdvice: advice })))
    const told = { budget_kind: 'key', budget_period: 'day', budget_resets_at: '1970-01-02T00:00:00.000Z' }
    assert.deepEqual(
      [fault.code, fault.members, fault.headers],
      ['budget_exceeded', { ...amounts, ...told, left_usd: '0.000002000' }, HEADERS],
    )
    assert.match(fault.message, /With 2000 it would fit\. The next day begins at 1970-01-02 00:00 UTC\.$/)
  })

  it('is told when the last of several begins anew, and of no time where waiting does not help', async () => {
    const of = (allowanceId: string, period: Period, amount: bigint): Ceiling => ({
      ...{ allowanceId, kind: 'tag', subject: `run=${allowanceId}`, budget: { period, amount: nanos(amount) } },
    })
    const day = of('a', 'day', 9_000n)
    const refusalBy = (others: readonly Ceiling[], refusing: readonly string[]) =>
      thrownBy(() =>
        createHouse({ outcome: 'allowance_spent', allowanceId: 'a', left: nanos(1n), refusing }).begin(
          wishOf({ ceilings: [day, ...others] }),
        ),
      )
    const both = await refusalBy([of('b', 'month', 9_000n)], ['a', 'b'])
    assert.deepEqual(
      [both.members.budget_subject, both.members.left_usd, both.members.budget_resets_at],
      ['run=a', '0.000000001', '1970-02-01T00:00:00.000Z'],
    )
    assert.match(both.message, /The next month begins at 1970-02-01 00:00 UTC\.$/)
    const second = await thrownBy(() =>
      createHouse({ outcome: 'allowance_spent', allowanceId: 'b', left: nanos(1n), refusing: ['b'] }).begin(
        wishOf({ ceilings: [day, of('b', 'month', 9_000n)] }),
      ),
    )
    assert.equal(second.members.budget_subject, 'run=b', 'the one that refused, wherever it stands')
    const fits = await refusalBy([of('b', 'month', 9_000n)], ['a'])
    assert.equal(fits.members.budget_resets_at, '1970-01-02T00:00:00.000Z', 'one that fits is not waited for')
    const total = await refusalBy([of('b', 'total', 9_000n)], ['a', 'b'])
    assert.equal(total.members.budget_resets_at, undefined)
    assert.match(total.message, /A budget in the way is a total: waiting does not restore it\.$/)
    const small = await refusalBy([of('b', 'month', 6_999n)], ['a', 'b'])
    assert.equal(small.members.budget_resets_at, undefined)
    assert.match(small.message, /Waiting does not help: this call alone exceeds a budget\.$/)
  })

  it('is told whose budget it is, where it is not its own, and what would fit into the balance as well', async () => {
    const spent = { outcome: 'allowance_spent', allowanceId: 'a', left: nanos(6_000n), refusing: ['a'] } as const
    const ceilings = [ceilingOf('tag', 'team=search')]
    const fault = await thrownBy(() => createHouse(spent).begin(wishOf({ ceilings, moneyAdvice: advice })))
    assert.deepEqual([fault.members.budget_kind, fault.members.budget_subject], ['tag', 'team=search'])
    assert.match(fault.message, /per day\. This is the budget of tag team=search\. With 5000 it would fit\./)
    const caller = testCaller({ token: token({ mayReadAccount: false }), budget: BUDGET })
    const stranger = await thrownBy(() => createHouse(spent).begin(wishOf({ caller, ceilings })))
    assert.equal(stranger.members.left_usd, undefined, 'what others share is not told to who may not read the account')
    assert.doesNotMatch(stranger.message, /left:/)
  })

  it('needs nothing where nothing is held', async () => {
    const { begin } = createHouse({ outcome: 'money_spent' })
    assert.equal((await thrownBy(() => begin(wishOf({ hold: null })))).members.needed_usd, '0.000000000')
  })
})

describe('a caller who may not call any more', () => {
  for (const [outcome, code, headers] of [
    ['account_suspended', 'account_suspended', HEADERS],
    ['account_inactive', 'forbidden', HEADERS],
    ['credential_inactive', 'invalid_credential', {}],
    ['account_unknown', 'internal_error', {}],
    ['ended', 'internal_error', {}],
  ] as const)
    it(`is told so, or that it is our fault: ${outcome}`, async () => {
      const fault = await thrownBy(() => createHouse({ outcome }).begin(wishOf()))
      assert.deepEqual([fault.code, fault.headers], [code, headers])
      if (code === 'internal_error') assert.match(String(fault.cause), new RegExp(outcome))
    })

  it('is told which account it is about', async () => {
    assert.match((await thrownBy(() => createHouse({ outcome: 'account_inactive' }).begin(wishOf()))).message, /closed/)
  })
})

describe('how long a call that was refused for a limit is to wait', () => {
  for (const outcome of ['requests_spent', 'tokens_spent'] as const)
    it(`is never longer than the window, though its end is a little more than that ahead of our clock: ${outcome}`, async () => {
      assert.equal((await refusalOf(outcome, { endsAtMs: NOW_MS + 60_004 })).retryAfterSeconds, 60)
      assert.equal((await refusalOf(outcome, { endsAtMs: NOW_MS + 12_001 })).retryAfterSeconds, 13)
      assert.equal((await refusalOf(outcome, { endsAtMs: NOW_MS - 5 })).retryAfterSeconds, 1)
    })

  it('is a second where what calls that run here have reserved would make room, to the very token', async () => {
    const endsAtMs = NOW_MS + 40_000
    const enough = await refusalOf('tokens_spent', { endsAtMs, left: 300, reserved: 700 })
    assert.equal(enough.retryAfterSeconds, 1)
    assert.match(
      enough.message,
      /300 of 60,000 per 60 seconds are left\. The limit is that of your tier\. Your running calls reserve .* Retry in 1 s\.$/,
    )
    const tooLittle = await refusalOf('tokens_spent', { endsAtMs, left: 300, reserved: 699 })
    assert.equal(tooLittle.retryAfterSeconds, 40)
    assert.match(
      tooLittle.message,
      /300 of 60,000 per 60 seconds are left\. The limit is that of your tier\. Retry in 40 s\.$/,
    )
  })
})
