import type { UnitPrice } from '../kernel/money.ts'

/**
 * How a call of an operation is priced: so many units at so much a unit. What the units are, how many a request can cost at
 * the most, and how many an answer did cost, is the operation's; what a unit costs can be changed by the operator.
 */
export type PriceContract<Input> = {
  readonly contract: 'per_call' | 'per_token' | 'response_count' | 'per_second' | 'dynamic'
  /** What is counted, in the singular. */
  readonly unit: string
  /** Published, in nano-USD for a unit. */
  readonly unitPrice: UnitPrice
  /** What is held before the upstream is asked. No charge exceeds it. */
  readonly most: (input: Input) => bigint
  /** What a quote estimates. */
  readonly expected: (input: Input) => bigint
  /** What that takes for granted, as a sentence for the caller. */
  readonly assumption?: (input: Input) => string
  /** What of a request most of its price comes from, so that a refusal for money can name it. */
  readonly costly?: (input: Input) => Costly
  /** Whether the two are the same, whatever the upstream does. */
  readonly isExact: boolean
  /** Reads from the answer how much was used; undefined where it does not say. */
  readonly measure: (reply: Reply) => MeasuredUnits | undefined
  /** How much an answer used that does not say it, by what was sent; left out where nobody can count that. */
  readonly counted?: (input: Input, count: (text: string) => Promise<number>) => Promise<MeasuredUnits>
}

/** A parameter that a price grows with. */
export type Costly = {
  readonly name: string
  /** How many of it there are. */
  readonly units: number
  /** What is held with fewer of it, whichever those are. */
  readonly mostOf: (units: number) => number
}

/** What an upstream answered, as far as a price needs it. */
export type Reply = {
  readonly status: number
  /** Undefined where the body is not JSON. */
  readonly json: unknown
}

export type MeasuredUnits = {
  readonly units: bigint
  readonly inputTokens?: number
  readonly outputTokens?: number
}

const ONE = (): bigint => 1n

type PerCall = {
  readonly unitPrice: UnitPrice
  /** Whether the answer is one that is paid for. */
  readonly isCharged: (reply: Reply) => boolean
}

export function perCall({ unitPrice, isCharged }: PerCall): PriceContract<unknown> {
  return {
    contract: 'per_call',
    unit: 'call',
    unitPrice,
    most: ONE,
    expected: ONE,
    isExact: true,
    measure: (reply) => (isSilent(reply) ? undefined : { units: isCharged(reply) ? 1n : 0n }),
  }
}

/** An answer that looks like a success, and can't be read: nobody knows whether it is one. */
function isSilent({ status, json }: Reply): boolean {
  return json === undefined && status < 300
}

/** Charged by a count that the answer itself carries. */
export function responseCount({ unitPrice, count }: { unitPrice: UnitPrice; count: (reply: Reply) => bigint }) {
  return {
    contract: 'response_count',
    unit: 'response',
    unitPrice,
    most: ONE,
    expected: ONE,
    assumption: () => 'Assumed: an answer that is charged.',
    isExact: false,
    measure: (reply) => (isSilent(reply) ? undefined : { units: count(reply) }),
  } as const satisfies PriceContract<unknown>
}

type PerToken<Input> = {
  readonly unitPrice: UnitPrice
  /** More than any tokenizer makes of the request. */
  readonly most: (input: Input) => number
  readonly expected: (input: Input) => number
  readonly costly: (input: Input) => Costly
  /** As the upstream counted them; undefined where it does not say. */
  readonly evidence: (reply: Reply) => number | undefined
  /** As we count them in what was sent. */
  readonly counted: (input: Input, count: (text: string) => Promise<number>) => Promise<number>
}

export function perToken<Input>(given: PerToken<Input>): PriceContract<Input> {
  const { unitPrice, most, expected, costly, evidence, counted } = given
  const measured = (tokens: number) => ({ units: BigInt(tokens), inputTokens: tokens })
  return {
    contract: 'per_token',
    unit: 'token',
    unitPrice,
    most: (input) => BigInt(most(input)),
    expected: (input) => BigInt(expected(input)),
    assumption: (input) => `Assumed: about ${expected(input)} tokens, by our estimate of the request.`,
    costly,
    isExact: false,
    measure(reply) {
      const tokens = evidence(reply)
      return tokens === undefined ? undefined : measured(tokens)
    },
    counted: async (input, count) => measured(await counted(input, count)),
  }
}

type Dynamic<Input> = {
  readonly unit: string
  readonly unitPrice: UnitPrice
  readonly most: (input: Input) => number
  /** As much as the most where left out. */
  readonly expected?: (input: Input) => number
  readonly assumption?: (input: Input) => string
  readonly costly?: (input: Input) => Costly
  readonly evidence: (reply: Reply) => number | undefined
}

/** Priced by what the request asks for, and charged by what was delivered of it. */
export function dynamic<Input>(given: Dynamic<Input>): PriceContract<Input> {
  const { unit, unitPrice, most, expected = most, costly, evidence } = given
  return {
    contract: 'dynamic',
    unit,
    unitPrice,
    most: (input) => BigInt(most(input)),
    expected: (input) => BigInt(expected(input)),
    assumption: given.assumption ?? (() => 'Assumed: all that is asked for is delivered.'),
    ...(costly && { costly }),
    isExact: false,
    measure(reply) {
      const units = isSilent(reply) ? undefined : evidence(reply)
      return units === undefined ? undefined : { units: BigInt(units) }
    },
  }
}

const MOST_TOKENS = 1e12

/** A count as an upstream may give it: whatever is not a plausible whole number says nothing. */
export function countIn(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS ? value : undefined
}

/** A member of a JSON value, wherever it leads; undefined where there is none. */
export function memberOf(value: unknown, ...names: readonly string[]): unknown {
  let found: unknown = value
  for (const name of names) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = Reflect.get(found, name)
  }
  return found
}
