import assert from 'node:assert/strict'
import { beginBatch } from '../../server/src/calls/begin-batch.ts'
import type { Call, Ending, Extension } from '../../server/src/calls/call.ts'
import { NO_USAGE } from '../../server/src/calls/calls.ts'
import { endBatch } from '../../server/src/calls/end-batch.ts'
import { extendBatch } from '../../server/src/calls/extend-batch.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import { resolveCall, resolveOverdue, sweepOrphans } from '../../server/src/calls/orphans.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount, expirePromotions } from '../../server/src/ledger/credit.ts'
import { reverseCharge, reversePayment, winDispute } from '../../server/src/ledger/reverse.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { freeOf } from '../model/account.ts'
import * as credits from '../model/credits.ts'
import { accountOf } from '../model/entries.ts'
import { extend } from '../model/extend.ts'
import * as oracle from '../model/ledger-model.ts'
import * as orphans from '../model/orphans.ts'
import { microseconds } from './instants.ts'
import { type Command, OVERDUE_SECONDS } from './verbs-commands.ts'
import { LEASE_SECONDS, passTime, type World } from './verbs-world.ts'
import { holdOf, ids } from './world.ts'

/** Does a command there and here: the answers must be the same. Tells the outcome in a word, or undefined where there was nothing to do it to. */
export async function run(world: World, command: Command): Promise<string | undefined> {
  const { pools, model } = world
  switch (command.do) {
    case 'credit':
    case 'grant':
      return runCredit(world, command)
    case 'begin':
      return runBegin(world, command)
    case 'extend':
      return runExtend(world, command)
    case 'end':
    case 'end-unknown':
      return runEnd(world, command)
    case 'reverse-payment':
      return runReversePayment(world, command)
    case 'win-dispute':
      return runWinDispute(world, command)
    case 'reverse-charge':
    case 'forgive':
      return runReverseCharge(world, command)
    case 'expire': {
      await passTime(world, command.afterSeconds)
      const expired = await expirePromotions(pools.rest)
      assert.equal(expired, credits.expire(model, nowUs()))
      return expired > 0 ? 'expired' : 'nothing expired'
    }
    case 'meter':
      return runMeter(world, command)
    case 'die':
    case 'live':
      return runLease(world, command)
    case 'sweep':
    case 'overdue':
      if (command.do === 'overdue') await passTime(world, command.afterSeconds)
      return runUpkeep(world, command)
    case 'resolve':
      return runResolve(world, command)
    case 'pass':
      await passTime(world, command.seconds)
      return 'passed'
  }
}

async function runCredit(world: World, command: Extract<Command, { do: 'credit' | 'grant' }>): Promise<string> {
  const { pools, model, accounts } = world
  const accountId = at(accounts, command.account) ?? ''
  const isGrant = command.do === 'grant'
  const kind = isGrant ? 'promotion' : 'payment'
  const known = command.again
    ? entriesOf(model, kind).findLast(([, entry]) => entry.accountId === accountId)
    : undefined
  const entryId = known?.[0] ?? ids.next()
  // The same again: another amount under the same id is refused.
  const shared = { entryId, accountId, amount: nanos(known?.[1].credited ?? BigInt(command.amount)) }
  const expiresAt =
    isGrant && command.expiresInSeconds !== null ? new Date(Date.now() + command.expiresInSeconds * 1000) : undefined
  const added = await creditAccount(
    pools.rest,
    isGrant ? { ...shared, kind: 'promotion', ...(expiresAt && { expiresAt }) } : { ...shared, kind: 'payment' },
  )
  const expiresAtUs = expiresAt === undefined ? credits.NEVER_US : BigInt(expiresAt.getTime()) * 1000n
  const expected = credits.credit(model, entryId, accountId, shared.amount, isGrant ? expiresAtUs : null)
  assert.equal(added, expected)
  return added ? kind : `${kind} again`
}

async function runBegin(world: World, command: Extract<Command, { do: 'begin' }>): Promise<string | undefined> {
  const { pools, model, begun } = world
  const call = command.again ? begun.at(-1) : callOf(world, command)
  const ownerId = at(world.owners, command.owner) ?? ''
  if (call === undefined) return undefined
  const [judgement] = await beginBatch(createMoneyQuery(pools.money), ownerId, [call])
  if (judgement === undefined) throw new Error('a call was not judged')
  const expected = oracle.begin(model, call, microseconds(judgement.judgedAt), ownerId)
  const holder = 'holder' in judgement ? judgement.holder : null
  assert.deepEqual(
    { outcome: judgement.outcome, free: BigInt(judgement.free), holder },
    { outcome: expected.outcome, free: expected.free, holder: expected.holder },
  )
  if (judgement.outcome === 'begun' && !begun.includes(call)) begun.push(call)
  return judgement.outcome
}

function callOf(world: World, { who, amount, allowances, claims }: Extract<Command, { do: 'begin' }>): Call {
  const { id: credentialId, accountId } = at(world.credentials, who) ?? { id: '', accountId: '' }
  const own = world.allowances.filter((id) => world.model.allowances.get(id)?.accountId === accountId)
  const once = { limit: 1, fingerprint: '', keepSeconds: 100, endsWithOwner: false }
  return {
    id: ids.next(),
    accountId,
    credentialId,
    operation: 'probe',
    hold: holdOf(
      amount === null ? freeOf(accountOf(world.model, accountId)) : BigInt(amount),
      own.filter((_, place) => (allowances >> place) % 2 === 1),
    ),
    tokens: 0,
    windows: [],
    claims: [
      ...(claims % 2 === 1
        ? [{ scope: 'concurrency', key: 'all', limit: 2, fingerprint: '', keepSeconds: 0, endsWithOwner: true }]
        : []),
      ...(claims % 3 === 1
        ? [{ scope: 'task', key: 'tasks', limit: 3, fingerprint: '', keepSeconds: 0, endsWithOwner: false }]
        : []),
      ...(claims > 6 ? [{ ...once, scope: 'once', key: `key ${claims % 4}` }] : []),
    ],
  }
}

async function runEnd(
  world: World,
  command: Extract<Command, { do: 'end' | 'end-unknown' }>,
): Promise<string | undefined> {
  const { pools, model } = world
  const call =
    command.do === 'end'
      ? at(command.open ? [...model.holds.values()].map((hold) => hold.call) : world.begun, command.which)
      : { id: ids.next(), accountId: at(world.credentials, command.who)?.accountId ?? '' }
  if (call === undefined) return undefined
  const { amount } = command
  const ending: Ending = {
    id: call.id,
    accountId: call.accountId,
    amount: amount === null ? null : nanos(BigInt(amount)),
    forgiven: amount !== null && command.do === 'end' && command.forgiven,
    usage: { ...NO_USAGE, executed: amount !== null },
  }
  const isNew = !model.ended.has(call.id)
  const [settlement] = await endBatch(createMoneyQuery(pools.money), [ending])
  if (settlement === undefined || settlement instanceof Error) throw new Error(`no settlement: ${settlement}`)
  const { outcome, charged, overrun, free, endedNow, settledAt } = settlement
  const { left: _, ...expected } = oracle.end(model, ending, microseconds(settledAt))
  const answer = { outcome, charged: BigInt(charged), overrun: BigInt(overrun), free: BigInt(free) }
  assert.deepEqual({ ...answer, endedNow }, { ...expected, endedNow: isNew })
  return isNew ? outcome : `${outcome} before`
}

async function runExtend(world: World, command: Extract<Command, { do: 'extend' }>): Promise<string | undefined> {
  const { pools, model } = world
  const call = at(command.open ? [...model.holds.values()].map((hold) => hold.call) : world.begun, command.which)
  if (call === undefined) return undefined
  const { id, accountId } = call
  const ownerId = at(world.owners, command.owner) ?? ''
  const held = model.holds.get(id)?.amount ?? 0n
  const most = held + freeOf(accountOf(model, accountId))
  const amount = nanos(command.amount === null ? most : BigInt(command.amount))
  const extension: Extension = { id, accountId, windows: [], tokens: 0, amount }
  const [growth] = await extendBatch(createMoneyQuery(pools.money), ownerId, [extension])
  if (growth === undefined || growth instanceof Error) throw new Error(`not extended: ${growth}`)
  const expected = extend(model, extension, microseconds(growth.judgedAt), ownerId)
  assert.deepEqual(
    { outcome: growth.outcome, held: BigInt(growth.held), reserved: growth.reserved },
    { outcome: expected.outcome, held: expected.held, reserved: expected.reserved },
  )
  if (growth.outcome !== 'extended') return `not extended: ${growth.outcome}`
  return expected.held > held ? 'extended' : 'extended before'
}

async function runReversePayment(
  { pools, model, reversals }: World,
  command: Extract<Command, { do: 'reverse-payment' }>,
): Promise<string | undefined> {
  const repeated = command.again ? reversals.at(-1) : undefined
  const paymentId = repeated?.of ?? at(entriesOf(model, 'payment'), command.which)?.[0]
  if (paymentId === undefined) return undefined
  const reversalId = repeated?.id ?? ids.next()
  const kind = command.dispute ? 'dispute' : 'payment_reversal'
  const most = nanos(BigInt(command.most))
  const reversed = await reversePayment(pools.rest, { reversalId, paymentId, kind, most })
  assert.equal(reversed, credits.reversePayment(model, reversalId, paymentId, most, kind))
  if (repeated === undefined && reversed > 0n) reversals.push({ id: reversalId, of: paymentId })
  return repeated ? 'payment reversed before' : reversed === 0n ? 'nothing left to reverse' : kind
}

async function runWinDispute(
  { pools, model, wins }: World,
  { which, again }: Extract<Command, { do: 'win-dispute' }>,
): Promise<string | undefined> {
  const repeated = again ? wins.at(-1) : undefined
  const disputeId = repeated?.of ?? at(entriesOf(model, 'dispute'), which)?.[0]
  if (disputeId === undefined) return undefined
  const entryId = repeated?.id ?? ids.next()
  const won = await winDispute(pools.rest, entryId, disputeId)
  assert.equal(won, credits.winDispute(model, entryId, disputeId))
  if (repeated === undefined && won > 0n) wins.push({ id: entryId, of: disputeId })
  return repeated ? 'won again' : won > 0n ? 'won' : 'won before'
}

async function runReverseCharge(
  { pools, model, givenBack }: World,
  command: Extract<Command, { do: 'reverse-charge' | 'forgive' }>,
): Promise<string | undefined> {
  const repeated = command.do === 'reverse-charge' && command.again ? givenBack.at(-1) : undefined
  const charges = [...model.ended].filter(([, { outcome }]) => outcome === 'posted')
  const chargeId = repeated?.of ?? at(charges, command.which)?.[0]
  if (chargeId === undefined) return undefined
  if (command.do === 'forgive') {
    const most = model.ended.get(chargeId)?.amount ?? 0n
    const { rows } = await pools.rest.query('select forgive_charge($1, $2) as given', [chargeId, most])
    const given = credits.forgiveCharge(model, chargeId, most)
    assert.deepEqual(rows, [{ given }])
    return given > 0n ? 'forgiven' : 'nothing to forgive'
  }
  const reversalId = repeated?.id ?? ids.next()
  const most = nanos(BigInt(command.most))
  const given = await reverseCharge(pools.rest, reversalId, chargeId, most)
  assert.equal(given, credits.reverseCharge(model, reversalId, chargeId, most))
  if (repeated === undefined && given > 0n) givenBack.push({ id: reversalId, of: chargeId })
  return repeated ? 'charge given back before' : given > 0n ? 'charge given back' : 'nothing left to give back'
}

/** Where a period stands is nothing that anybody is told, or that is written otherwise. */
async function runMeter({ pools, credentials, allowances }: World, { who, which }: Extract<Command, { do: 'meter' }>) {
  const { rows } = await pools.rest.query<{ done: boolean }>(
    'select meter_budget(credential => $1, allowance => $2) as done',
    [at(credentials, who)?.id, at(allowances, which)],
  )
  return rows[0]?.done === true ? 'a budget stands with its credential' : 'a budget of somebody else does not'
}

async function runLease(
  { pools: { rest }, model, owners }: World,
  command: Extract<Command, { do: 'die' | 'live' }>,
): Promise<string> {
  const owner = at(owners, command.owner) ?? ''
  if (command.do === 'live') {
    await rest.query('select renew_lease($1, $2)', [owner, LEASE_SECONDS])
    orphans.live(model, owner)
    return 'lives'
  }
  await rest.query("update owners set lease_until = clock_timestamp() - interval '1 second' where id = $1", [owner])
  orphans.die(model, owner)
  return 'died'
}

async function runUpkeep(
  { pools, model, sweeper }: World,
  command: Extract<Command, { do: 'sweep' | 'overdue' }>,
): Promise<string> {
  const parts = { pool: pools.rest, log: silentLog }
  if (command.do === 'sweep') {
    const found = await sweepOrphans({ ...parts, ownerId: sweeper, graceSeconds: 0 })
    assert.equal(found, orphans.sweep(model, nowUs()).length)
    return found > 0 ? 'orphaned' : 'nothing orphaned'
  }
  const voided = await resolveOverdue(parts, OVERDUE_SECONDS)
  assert.equal(voided, orphans.resolveOverdue(model, OVERDUE_SECONDS, nowUs()).length)
  return voided > 0 ? 'overdue' : 'nothing overdue'
}

async function runResolve(
  { pools, model, begun }: World,
  { which, amount }: Extract<Command, { do: 'resolve' }>,
): Promise<string | undefined> {
  const unsettled = [...model.holds].filter(([, hold]) => hold.unsettledAtUs !== null).map(([id]) => id)
  const id =
    at(unsettled, which) ??
    at(
      begun.map((call) => call.id),
      which,
    )
  if (id === undefined) return undefined
  const asked = amount === null ? null : nanos(BigInt(amount))
  const answer = await resolveCall(pools.rest, id, asked)
  const expected = orphans.resolve(model, id, asked, nowUs())
  assert.deepEqual(answer, expected)
  return answer === undefined ? 'not unsettled' : amount === null ? 'resolved as void' : 'resolved by a charge'
}

function entriesOf(model: oracle.Model, kind: string) {
  return [...model.entries].filter(([, entry]) => entry.kind === kind)
}

function at<T>(items: readonly T[], which: number): T | undefined {
  return items[which % Math.max(1, items.length)]
}

function nowUs(): bigint {
  return BigInt(Date.now()) * 1000n
}
