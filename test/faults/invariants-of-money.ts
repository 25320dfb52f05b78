import { createAttemptsTally } from '../../harness/attempts.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { wholeMicros } from '../../server/src/kernel/money.ts'
import type { ChargeRow, Evidence } from './evidence.ts'
import type { Operation } from './history.ts'
import { isBrokenOffUpstream, UPSTREAMS_OWN } from './listen.ts'
import { REPORTS_ZERO } from './questions.ts'
import type { Tokens } from './speech.ts'
import { speechOf } from './speeches.ts'
import { VIDEO_OPERATION } from './videos.ts'

const PAID = new Set(['call', 'idempotent call', 'quoted call'])

export function moneyConserved({ violations, samples, operations, entries, people }: Evidence): string[] {
  const problems = [...new Set([...violations, ...samples.violations])]
  const known = new Set(people.flatMap(({ payments }) => payments))
  const entryIds = new Set(entries.map(({ id }) => id))
  for (const { what, subject = '', outcome } of operations) {
    if (what === 'top-up') known.add(subject)
    const entersOne = what === 'top-up' || what === 'refund' || what === 'charge reversal'
    if (entersOne && outcome === 'ok' && !entryIds.has(subject)) problems.push(`${what} ${subject} is lost`)
  }
  // What was sent again is answered as the first time.
  const answered = operations.filter(({ outcome, told }) => outcome === 'ok' && told.amount !== undefined)
  for (const [subject, copies] of Map.groupBy(answered, (one) => `${one.what} ${one.subject}`)) {
    const amounts = new Set(copies.map(({ told }) => told.amount))
    if (amounts.size > 1 && !subject.startsWith('price'))
      problems.push(`${subject} was answered ${[...amounts].join(' and ')}`)
  }
  for (const { id, kind } of entries) if (kind === 'payment' && !known.has(id)) problems.push(`nobody paid ${id}`)
  return problems
}

export function nothingOverspent({ samples, operations }: Evidence): string[] {
  const negative = operations.filter(({ told }) => (told.balanceNanos ?? 0n) < 0n)
  return [
    ...samples.overspent,
    ...negative.map(({ n, told }) => `operation ${n} was told a balance of ${told.balanceNanos}`),
    ...(samples.looks() === 0 ? ['no row was ever looked at'] : []),
  ]
}

/** What a call has cost its caller in the end, but for what an operator gave back. */
export function chargedFor({ charges, entries }: Evidence): (id: Id) => bigint {
  const forgiven = new Map(
    entries.filter(({ kind }) => kind === 'forgiveness').map((row) => [row.corrects, -row.charged]),
  )
  return (id) => (charges.get(id)?.amount ?? 0n) - (forgiven.get(id) ?? 0n)
}

export function chargedOnce(evidence: Evidence): string[] {
  const { operations, idsByMark } = evidence
  const chargeOf = chargedFor(evidence)
  const problems: string[] = []
  const paid = operations.filter(({ what, mark }) => PAID.has(what) && mark !== undefined)
  for (const [mark = '', copies] of Map.groupBy(paid, (operation) => operation.mark)) {
    const ids = [...new Set(idsByMark.get(mark))]
    const charged = ids.filter((id) => chargeOf(id) > 0n)
    const told = new Set(copies.filter(({ told }) => (told.costNanos ?? 0n) > 0n).map(({ told }) => told.id))
    const about = `${copies[0]?.what} ${mark} (operations ${copies.map(({ n }) => n).join(', ')})`
    if (charged.length > 1) problems.push(`${about} is charged as ${charged.join(' and ')}`)
    if (told.size > 1) problems.push(`${about} was told of charges ${[...told].join(' and ')}`)
    if (copies.length === 1 && ids.length > 1) problems.push(`${about} was sent once and asked as ${ids.join(' and ')}`)
  }
  return problems
}

export function nothingLost(evidence: Evidence): string[] {
  const { operations, charges, troubles } = evidence
  const chargeOf = chargedFor(evidence)
  return operations.flatMap((operation) => problemOf(operation) ?? [])

  function problemOf(operation: Operation): string | undefined {
    const { n, what, outcome, told } = operation
    const { id = '', costNanos, code, firstId = '' } = told
    const row = charges.get(id)
    // Agents are told that a call cost nothing which was refused before it began; of that the ledger has nothing.
    const isKnown = row !== undefined || (outcome === 'fail' && costNanos === 0n)
    if (costNanos !== undefined)
      return isKnown && chargeOf(id) === costNanos
        ? undefined
        : `operation ${n} was told that ${id} cost ${costNanos}, and the ledger has ${row === undefined ? 'nothing' : chargeOf(id)}`
    // Of a task nobody knows it yet.
    if (outcome === 'ok' && PAID.has(what) && operation.operation !== VIDEO_OPERATION)
      return `operation ${n} (${id}) completed without being told its cost`
    if (outcome === 'fail' && isBrokenOffUpstream(operation) && code !== UPSTREAMS_OWN)
      return `operation ${n} (${id}) broke off without being told its cost`
    if (outcome === 'fail' && !isBrokenOffUpstream(operation) && chargeOf(id) !== 0n && !isGivenBackByNobody(operation))
      return `operation ${n} was told ${code} and nothing of a charge, and ${id} cost ${chargeOf(id)}`
    if (code === 'idempotency_completed' && !((charges.get(firstId)?.amount ?? 0n) > 0n))
      return `operation ${n} was told that ${firstId} has completed, and it is not charged`
    return undefined
  }

  /** Whoever said that it is not charged was killed before PostgreSQL could be told, which may have charged it already. */
  function isGivenBackByNobody({ told: { code }, endedAtMs }: Operation): boolean {
    if (code !== 'settlement_timeout') return false
    return troubles.some(
      ({ kind, fromMs, toMs }) =>
        kind === 'kill gateway' && fromMs <= endedAtMs + GIVEN_BACK_WITHIN_MS && toMs >= endedAtMs,
    )
  }
}

/** As soon as PostgreSQL answers. */
const GIVEN_BACK_WITHIN_MS = 1_000

export function toldAgrees({ reports, charges, givenBack, violations }: Evidence): string[] {
  // Hours that are over are reported from sums that nobody is told of yet.
  const problems = [...reports.problems, ...violations.filter((one) => one.startsWith('the usage report'))]
  for (const [id, told] of reports.requests) {
    const row = charges.get(id)
    const cost = row === undefined || row.credential_id === null ? null : row.amount - (givenBack.get(id) ?? 0n)
    if (told !== cost) problems.push(`the record of ${id} says ${told}, and the ledger ${cost}`)
  }
  for (const [id, told] of reports.tokens) {
    const row = charges.get(id)
    const counted = row === undefined ? '' : inWords(tokensIn([row]))
    if (inWords(told) !== counted) problems.push(`the record of ${id} has ${inWords(told)}, and the ledger ${counted}`)
  }
  const byKey = Map.groupBy(charges.values(), ({ credential_id }) => credential_id ?? '')
  for (const [keyId, { micros, tokens }] of reports.usage) {
    const rows = byKey.get(keyId) ?? []
    const counted = tokensIn(rows)
    if (inWords(tokens) !== inWords(counted))
      problems.push(`the usage of key ${keyId} has ${inWords(tokens)}, and the ledger ${inWords(counted)}`)
    const nanos = rows.reduce((sum, row) => sum + row.amount - (givenBack.get(row.id) ?? 0n), 0n)
    if (wholeMicros(nanos) !== micros)
      problems.push(`the usage of key ${keyId} says ${micros} µUSD, and the ledger ${nanos} nUSD`)
  }
  if (reports.requests.size === 0) problems.push('no record was looked up')
  return problems
}

export function tokensIn(rows: readonly ChargeRow[]): Tokens {
  const sum = (of: (row: ChargeRow) => bigint) => Number(rows.reduce((total, row) => total + of(row), 0n))
  return {
    input: sum(({ input_tokens }) => input_tokens),
    output: sum(({ output_tokens }) => output_tokens),
    cacheRead: sum(({ cache_read_tokens }) => cache_read_tokens),
    cacheWrite: sum(({ cache_write_tokens }) => cache_write_tokens),
  }
}

export function inWords({ input, output, cacheRead, cacheWrite }: Tokens): string {
  return `${input} + ${output} tokens, ${cacheRead} read and ${cacheWrite} written`
}

/** Every charge has one upstream call that is billed, and what is billed and not charged is written down as our loss. */
export function upstreamAskedOnce(evidence: Evidence): string[] {
  const { charges, entries, askedById, journal, operations, resolutions } = evidence
  const problems: string[] = []
  // An upstream that reports zero has said that there is nothing to pay.
  const isFree = (entry: JournalEntry) => entry.model === REPORTS_ZERO
  for (const { n, outcome, told, operation: sold } of operations) {
    // What does not say what it used and can't be counted is given, and is our loss.
    const isGiven = ({ usage }: JournalEntry) => usage === null && speechOf(sold)?.isUncountable === true
    const isBilled = (askedById.get(told.id ?? '') ?? []).some(
      (entry) => entry.billed && !isFree(entry) && !isGiven(entry),
    )
    if (outcome === 'ok' && told.costNanos === 0n && isBilled)
      problems.push(`operation ${n} (${told.id}) completed, is billed and cost nothing`)
  }
  const lossById = new Map(entries.map(({ corrects, overrun }) => [corrects, overrun]))
  for (const [id, all] of askedById) {
    // Whose token is refused has done nothing, and may be asked once more.
    const asked = all.filter(({ status }) => status !== 401)
    if (asked.length > 1) problems.push(`the upstream was asked ${asked.length} times for ${id}`)
  }
  for (const { id, amount } of charges.values()) {
    const billed = (askedById.get(id) ?? []).filter((entry) => entry.billed)
    if (amount > 0n && billed.length !== 1)
      problems.push(`${id} is charged ${amount} and billed ${billed.length} times`)
  }
  for (const entry of journal) {
    const { request_id, billed, outcome } = entry
    const row = charges.get(request_id ?? '')
    if (!billed || (row?.amount ?? 0n) > 0n) continue
    const loss = (row?.overrun ?? 0n) + (lossById.get(request_id ?? '') ?? 0n)
    if (row === undefined) problems.push(`${request_id} is billed (${outcome}) and the ledger does not know it`)
    // An operator who voids a call knows that its upstream bills it, and that nothing of it was sent.
    // What becomes of a task is judged by how it ended.
    else if (loss <= 0n && !isFree(entry) && row.operation !== VIDEO_OPERATION && resolutions.byId.get(row.id) !== null)
      problems.push(`${request_id} is billed (${outcome}), ${row.outcome} without a charge and without a loss`)
  }
  return problems
}

/** What each operation says that a call may ask of upstreams, refreshes of its token included. */
export function attemptsKept({ asked }: Evidence): readonly string[] {
  const tally = createAttemptsTally()
  tally.add(asked)
  return asked.length === 0 ? ['no upstream was asked'] : tally.problems()
}

/**
 * Whatever is done to the cluster, nobody is told that we made a mistake: what can not be done is said by its name.
 * Operators ask for nothing here that may be refused.
 */
export function noMistakes({ operations }: Evidence): string[] {
  return operations.flatMap(({ n, what, client, outcome, subject, told }) => {
    if (told.code === 'internal_error') return [`operation ${n} (${what}, ${told.id}) was told of an internal error`]
    if (client === 'operator' && outcome === 'fail') return [`${what} ${subject} was refused: ${told.error}`]
    return []
  })
}
