import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { tokensOfBytes } from '../../sandbox/src/upstreams/models/tokens.ts'
import { GROWING_MODEL } from './deviants.ts'
import type { ChargeRow, Evidence } from './evidence.ts'
import type { Operation } from './history.ts'
import { chargedFor, inWords, tokensIn } from './invariants-of-money.ts'
import { isOfSettlement } from './invariants-of-processes.ts'
import { REPORTS_NOTHING, REPORTS_ZERO } from './questions.ts'
import type { Pictures, Speech, Tokens } from './speech.ts'
import { sentOf, speechOf, streamedSpeechOf } from './speeches.ts'
import { costOf, isByPiece, picturesIn, priceOfPicture } from './whole-speeches.ts'

const BYTES_PER_TOKEN = 3
/** What counting the pieces of an answer, and not the whole, can differ by. */
const ROUNDING_TOKENS = 2
/** How long a stream is heard out, and its settlement tried. */
const SETTLED_WITHIN_MS = 15_000

/** A call of a model, as everybody knows it. */
type Known = {
  readonly row: ChargeRow
  readonly speech: Speech
  readonly entry: JournalEntry
  readonly told: readonly Operation[]
  /** What it has cost in the end. */
  readonly amount: bigint
  /** Where its record says that its tokens are from, as far as that is kept. */
  readonly source: string | undefined
  /** Whether an operator ended it, by what the upstream billed. */
  readonly isResolved: boolean
}

/**
 * Of an answer that its caller has whole: what the upstream reported, or else what was sent. Of any other: that where it
 * came to be known, or else what was delivered, which is at least what the caller has and at most what was sent. Nothing, where
 * the caller heard nothing of it, or something kept it from being settled.
 */
export function usedIsPaid(evidence: Evidence): string[] {
  const { charges, askedById, operations, questions, resolutions, reports, troubles } = evidence
  const chargeOf = chargedFor(evidence)
  const toldOf = Map.groupBy(operations, ({ told }) => told.id ?? '')
  return [...charges.values()].flatMap((row) => {
    const { id } = row
    const speech = speechOf(row.operation)
    const entry = askedById.get(id)?.find(({ billed }) => billed)
    if (speech === undefined || entry === undefined) return []
    const [told, source] = [toldOf.get(id) ?? [], reports.tokens.get(id)?.source]
    const isResolved = resolutions.byId.has(id)
    const known: Known = { row, speech, entry, told, source, isResolved, amount: chargeOf(id) }
    const about = `${id} (${row.operation} of ${entry.model}, ${entry.outcome})`
    const wrong = [
      ...(row.amount > row.held ? [`${row.amount} of ${row.held} held`] : []),
      ...(known.amount === 0n && entry.model !== REPORTS_ZERO && told.some(isFreeForNoReason)
        ? ['nothing, though its caller heard some of it and nothing kept it from being settled']
        : []),
      ...(isByPiece(entry.model) ? wrongPictures(known, questions.get(id)?.pictures) : wrongAmount(known)),
      ...(isResolved || isByPiece(entry.model) ? [] : wrongTokens(known)),
      ...wrongGrowth(known),
    ]
    return wrong.map((what) => `${about} is charged ${what}`)
  })

  function isFreeForNoReason({ invokedAtMs, endedAtMs, told: { heardBytes = 0 } }: Operation): boolean {
    const untilMs = endedAtMs + SETTLED_WITHIN_MS
    const around = troubles.filter(({ fromMs, toMs }) => fromMs <= untilMs && toMs >= invokedAtMs)
    return heardBytes > 0 && !around.some(isOfSettlement)
  }
}

function isWhole({ told }: Known): boolean {
  return told.some((one) => one.outcome === 'ok' && !isCutForMoney(one))
}

function heardBytesOf({ told }: Known): number {
  return Math.max(0, ...told.map(({ told: { heardBytes = 0 } }) => heardBytes))
}

function wrongAmount(known: Known): string[] {
  const { row, speech, entry, amount, isResolved } = known
  // What is beyond the hold is the operator's loss.
  const worth = (tokens: Tokens) => smallest([costOf(entry.model, tokens), row.held])
  const sent = sentOf(speech, entry)
  const reported = speech.reported(entry)
  const isHeldFor = reported === undefined && speech.isUncountable === true && !isResolved
  const due = isHeldFor ? row.held : worth(reported ?? sent)
  if (isWhole(known)) return amount === due ? [] : [`${amount}, and ${due} is what its whole answer is worth`]
  if (amount === 0n || amount === due) return []
  const output = Math.max(0, Math.ceil(heardBytesOf(known) / BYTES_PER_TOKEN) - ROUNDING_TOKENS)
  // What was reported of the input may not have come; then all of it is counted, from wherever it was read.
  const inputs = [sent, { input: entry.input_tokens ?? 0, cacheRead: 0, cacheWrite: 0 }]
  const least = entry.model === REPORTS_ZERO ? 0n : smallest(inputs.map((input) => worth({ ...input, output })))
  const most = largest(inputs.map((input) => worth({ ...input, output: sent.output + ROUNDING_TOKENS })))
  if (entry.stream === true && amount >= least && amount <= most) return []
  return [`${amount}, and ${least} was heard of it, ${most} sent`]
}

const isCutForMoney = ({ told: { isAtCeiling } }: Operation) => isAtCeiling === true

/** A stream that grows passes on no text that is not held for. One that ends where the money does costs what was heard of it. */
function wrongGrowth(known: Known): string[] {
  const { row, speech, entry, told, amount } = known
  const isCut = told.some(isCutForMoney)
  if (entry.model !== GROWING_MODEL) return isCut ? [`${amount} and was cut, though all of it was held for`] : []
  const heard = Math.ceil(heardBytesOf(known) / BYTES_PER_TOKEN)
  const [least, most] = [Math.max(0, heard - ROUNDING_TOKENS), heard + ROUNDING_TOKENS].map((output) =>
    costOf(entry.model, { ...sentOf(speech, entry), output }),
  )
  return [
    ...(least !== undefined && least > row.held ? [`${amount} of ${row.held} held, and ${least} was heard`] : []),
    ...(isCut && most !== undefined && amount > most ? [`${amount}, and ${most} was heard before it was cut`] : []),
  ]
}

const smallest = (amounts: readonly bigint[]) => amounts.reduce((a, b) => (a < b ? a : b))
const largest = (amounts: readonly bigint[]) => amounts.reduce((a, b) => (a > b ? a : b))

/** The ledger's tokens are what the amount is for, and those that the upstream reported where they are said to be. */
function wrongTokens(known: Known): string[] {
  const { row, speech, entry, source } = known
  const tokens = tokensIn([row])
  const worth = smallest([costOf(entry.model, tokens), row.held])
  if (row.outcome === 'posted' && row.amount > 0n && worth !== row.amount)
    return [`${row.amount} for ${inWords(tokens)}`]
  const reported = speech.reported(entry)
  // What is beyond the hold uses up nobody's minute: of what was reported, only that counts which the request can have.
  if (row.amount === row.held && reported !== undefined && tokens.output < reported.output) return []
  if (isReportedAsItGoes(entry, row)) return row.outcome === 'posted' ? wrongSoFar(known, tokens, reported) : []
  if (source !== 'provider' || row.amount === 0n) return []
  if (reported === undefined) return [`for ${inWords(tokens)}, which nobody reported`]
  return inWords(tokens) === inWords(reported) ? [] : [`for ${inWords(tokens)}, and ${inWords(reported)} were reported`]
}

function isReportedAsItGoes({ stream, model }: JournalEntry, { operation }: ChargeRow): boolean {
  return stream === true && model !== REPORTS_NOTHING && streamedSpeechOf(operation)?.reportsAsItGoes === true
}

/**
 * Where every frame says what has been used so far, the last one that was read is charged and nothing is counted: at least
 * that with the text which the caller has, at most the last that was sent, and always what some frame has said.
 */
function wrongSoFar(known: Known, tokens: Tokens, reported: Tokens | undefined): string[] {
  const { entry, source } = known
  if (reported === undefined) return [`for ${inWords(tokens)}, and no frame was sent`]
  // Zeros are not believed of a stream that did not come to its end: what was delivered is counted. The record that says so is written behind
  // the answer, and may have died with its process; the amount is held against what was heard and sent in any case.
  if (source !== 'provider' && entry.model === REPORTS_ZERO && !isWhole(known)) return []
  const { output } = tokens
  const heard = tokensOfBytes(heardBytesOf(known))
  // Who leaves an upstream before a first frame comes pays for the input alone: docs/decisions/0035.
  if (output === 0 && heard === 0 && entry.outcome === 'left') return []
  if (source === 'counted') return ['by counting, though every frame reports']
  // Nobody else is charged before a first frame, which has some text.
  const least = entry.model === REPORTS_ZERO ? 0 : isWhole(known) ? reported.output : Math.max(1, heard)
  const isSaid = output === reported.output || output === tokensOfBytes(wholeDeltasIn(output) * DELTA_BYTES)
  const isRight = isSaid && output >= least && output <= reported.output
  if (isRight && inWords({ ...tokens, output: 0 }) === inWords({ ...reported, output: 0 })) return []
  return [`for ${inWords(tokens)}; ${least} of output were heard at least, and ${inWords(reported)} reported last`]
}

/** Of the sandbox's text in each frame but the last. */
const DELTA_BYTES = 8
const wholeDeltasIn = (tokens: number) => Math.floor((tokens * BYTES_PER_TOKEN) / DELTA_BYTES)

/** As many pictures as the upstream made and were asked for, at the price of their kind, or none. Tokens are not sold. */
function wrongPictures(known: Known, asked: Pictures | undefined): string[] {
  const { row, entry, amount } = known
  if (asked === undefined) return [`${amount}, and nobody asked for it`]
  const price = priceOfPicture(asked)
  const made = BigInt(Math.min(picturesIn(entry, asked), asked.n))
  const [due, held, tokens] = [made * price, BigInt(asked.n) * price, inWords(tokensIn([row]))]
  return [
    ...(amount === due || (amount === 0n && !isWhole(known)) ? [] : [`${amount}, and ${made} cost ${due}`]),
    ...(row.held === held ? [] : [`with ${row.held} held for ${asked.n} that cost ${held}`]),
    ...(tokens === inWords(NO_TOKENS) ? [] : [`for ${tokens} too`]),
  ]
}

const NO_TOKENS: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
