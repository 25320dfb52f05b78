import { createHmac, hash, hkdfSync, randomUUID, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Operation } from '../catalogue/operation.ts'
import type { Caller } from '../identity/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { formatUsd, type Nanos, nanos, type UnitPrice, wholeMicros } from '../kernel/money.ts'
import { decimalText, rational } from '../kernel/rational.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Priced } from './priced.ts'
import type { Quote } from './quote-body.ts'
import type { Held } from './terms.ts'
import { costOf, fraction, mostFor, type Terms } from './terms.ts'

/**
 * A quote is a promise in the caller's hands: a signed token over who may use it, for which request, at which price, and
 * until when. Nothing is stored until it is used, and then a claim sees to it that it is used once.
 */
export type Quotes = {
  /** But for whether the call could begin, which hangs on who asks. */
  readonly issue: (asked: Quoted, priced: Priced) => Omit<Quote, 'admission'>
  /** What was quoted, or a fault that says why the quote can't be used here. */
  readonly redeem: (quoteId: string, asked: Quoted) => Redeemed
}

export type Quoted = {
  readonly caller: Caller
  readonly operation: Pick<Operation, 'id'>
  readonly digest: string
}

export type Redeemed = {
  /** What must be claimed with the call, so that the quote is used once. */
  readonly claim: SingleUse
  /** What the call is held for, where these are its terms today: what we pay ourselves is not in the caller's hands. */
  readonly held: (today: Terms) => Held
}

type SingleUse = {
  readonly scope: typeof QUOTE
  readonly key: string
  readonly limit: 1
  readonly fingerprint: string
  readonly keepSeconds: number
  readonly endsWithOwner: false
}

type Parts = {
  readonly time: Pick<Clock, 'nowMs'>
  /** The current master key, then the one before it; none where there is no master key, and then no quote binds. */
  readonly masterKeys: readonly Secret[]
  readonly lifeSeconds?: number
  /** By which the contract of what is quoted is known; null where there is none. */
  readonly contractHash?: () => string | null
}

const QUOTE = 'quote'
/** From nano-dollars. */
const USD_PLACES = 9
/** A used quote is remembered for longer than any could still be valid. */
const KEPT_SECONDS = 24 * 3_600

export function createQuotes({ time, masterKeys, lifeSeconds = 300, contractHash = () => null }: Parts): Quotes {
  const keys = masterKeys.map(signingKeyOf)
  return {
    issue({ caller, operation, digest }, priced) {
      const { terms } = priced
      const { most, expected } = amountsOf(priced)
      const expiresAtMs = Math.floor(time.nowMs()) + lifeSeconds * 1_000
      const payload: Payload = {
        n: randomUUID(),
        a: caller.accountId,
        k: caller.credentialId,
        m: caller.mode,
        o: operation.id,
        d: digest,
        v: terms.version,
        w: unitsOf(terms),
        u: terms.rates.map(({ price }) => fraction(price)).join(' '),
        p: terms.rates.map(({ published }) => fraction(published)).join(' '),
        s: priced.most.join(' '),
        x: String(most),
        e: expiresAtMs,
      }
      const [current] = keys
      return {
        operation: operation.id,
        currency: 'USD',
        expected: money(expected, wholeMicros(expected)),
        max: money(most, -wholeMicros(-most)),
        exact: priced.isExact,
        ...(priced.isExact || priced.assumption === undefined ? {} : { assumption: priced.assumption() }),
        price_version: terms.version,
        // Of several units what each costs: of a model, by class, step and tier.
        ...(terms.rates.length > 1 && {
          prices: terms.rates.map(({ unit, price }) => ({ unit, usd: decimalText(price, USD_PLACES) })),
        }),
        contract_hash: contractHash(),
        expires_at: new Date(expiresAtMs).toISOString(),
        quote_id: current === undefined ? null : sign(current, payload),
      }
    },

    redeem(quoteId, { caller, operation, digest }) {
      const payload = keys.map((key) => open(key, quoteId)).find((found) => found !== undefined)
      if (payload === undefined) throw invalid('It was not issued here.')
      if (payload.a !== caller.accountId || payload.m !== caller.mode) throw invalid('It was made for another account.')
      // Its single use is claimed by the credential, so that another one could use it once more.
      if (payload.k !== caller.credentialId) throw invalid('It was made for another key.')
      if (payload.o !== operation.id || payload.d !== digest) throw invalid('It was made for another request.')
      if (payload.e <= time.nowMs()) throw invalid('It has expired.')
      const claim: SingleUse = {
        scope: QUOTE,
        key: payload.n,
        limit: 1,
        fingerprint: digest,
        keepSeconds: KEPT_SECONDS,
        endsWithOwner: false,
      }
      return { claim, held: (today) => heldBy(payload, today) }
    },
  }
}

/** What a quote of ours says, for operators: also where it has expired. Undefined where it is none of ours. */
export function readQuote(quoteId: string, masterKeys: readonly Secret[]) {
  const payload = masterKeys.map((key) => open(signingKeyOf(key), quoteId)).find((found) => found !== undefined)
  if (payload === undefined) return undefined
  const { n: nonce, a: accountId, k: credentialId, o: operation, x: most, e: expiresAtMs } = payload
  return { nonce, accountId, credentialId, operation, most: nanos(BigInt(most)), expiresAt: new Date(expiresAtMs) }
}

/** What a quote says: the most that it can cost, and what it will probably cost. */
export function amountsOf({ terms, ...counts }: Pick<Priced, 'terms' | 'most' | 'expected'>) {
  const most = mostFor(terms, counts.most)
  const estimate = costOf(terms, counts.expected())
  // An estimate may be of more than a request can be; what it costs is never more than the most.
  return { most, expected: estimate < most ? estimate : most }
}

const wholeNumber = z.string().regex(/^\d{1,30}$/)
const wholeNumbers = z.string().regex(/^\d{1,30}( \d{1,30}){0,99}$/)
const fractions = z.string().regex(/^\d{1,60}\/\d{1,60}( \d{1,60}\/\d{1,60}){0,99}$/)
const payloadForm = z.object({
  n: z.string(),
  a: z.string(),
  k: z.string(),
  m: z.enum(['live', 'test']),
  o: z.string(),
  d: z.string(),
  v: z.string(),
  w: z.string(),
  u: fractions,
  p: fractions,
  s: wholeNumbers,
  x: wholeNumber,
  e: z.int(),
})
type Payload = z.output<typeof payloadForm>

function heldBy({ v: version, w: units, u, p, s, x }: Payload, today: Terms): Held {
  const [prices, published] = [u.split(' '), p.split(' ')]
  if (units !== unitsOf(today)) throw invalid('The operation is now sold in other units.')
  const rates = today.rates.map((rate, at) => ({
    ...rate,
    price: fromFraction(prices[at] ?? ''),
    published: fromFraction(published[at] ?? ''),
  }))
  return { terms: { version, rates }, mostCounts: s.split(' ').map(BigInt), most: nanos(BigInt(x)) }
}

/** In short, what the prices are of, in their order. */
function unitsOf({ rates }: Terms): string {
  return hash('sha256', rates.map(({ unit }) => unit).join('\n'), 'base64url').slice(0, 16)
}

/** A key of its own, so that a signature here says nothing about what else the master key protects. */
function signingKeyOf(masterKey: Secret): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(masterKey.reveal(), 'base64'), '', 'farebox quotes', 32))
}

function sign(key: Buffer, payload: Payload): string {
  const text = Buffer.from(JSON.stringify(payload)).toString('base64url')
  return `${text}.${signatureOf(key, text).toString('base64url')}`
}

const TOKEN = /^([A-Za-z0-9_-]{1,8000})\.([A-Za-z0-9_-]{43})$/

function open(key: Buffer, token: string): Payload | undefined {
  const [, text = '', signature = ''] = TOKEN.exec(token) ?? []
  const given = Buffer.from(signature, 'base64url')
  const right = signatureOf(key, text)
  if (text === '' || given.length !== right.length || !timingSafeEqual(given, right)) return undefined
  // One that an earlier version of ours signed may be of another form.
  return payloadForm.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))).data
}

function signatureOf(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function invalid(detail: string): Fault {
  return new Fault('quote_invalid', { detail })
}

function fromFraction(text: string): UnitPrice {
  const [numerator = '0', denominator = '1'] = text.split('/')
  return rational(BigInt(numerator), BigInt(denominator))
}

function money(amount: Nanos, micros: bigint) {
  return { usd: formatUsd(amount), micros_usd: Number(micros) }
}
