/** What a vendor charges its customer for one call, whatever it says in the answer. No unit is in two of these. */
export type Bill = {
  readonly price_class: PriceClass
  /** Tokens that were neither read from a cache nor written to one, and no sound. */
  readonly input?: number
  readonly audio_input?: number
  readonly cache_read?: number
  readonly cache_write_5m?: number
  readonly cache_write_1h?: number
  /** With what was thought, seen or not. */
  readonly output?: number
  readonly web_searches?: number
  readonly image_input?: number
  /** Of the output. */
  readonly audio_output?: number
  readonly image_output?: number
  /** Of tools that the vendor ran, beside searches. */
  readonly calls?: Readonly<Record<string, number>>
  /** Where it is not the standard one. */
  readonly tier?: string
  readonly images?: number
  /** Of data. */
  readonly credits?: number
  /** Of all videos of a task together, and their resolution. */
  readonly seconds?: number
  readonly sr?: number
}

/** What is large costs ten times as much. */
export type PriceClass = 'standard' | 'large'

export function priceClassOf(model: string): PriceClass {
  return model.includes('-large') ? 'large' : 'standard'
}

export function creditsBill(credits: number): Bill {
  return { price_class: 'standard', credits }
}

/** The bill of an answer of which only so many of its tokens were made. */
export function billUpTo(made: number, whole: number, bill: Bill): Bill {
  if (bill.output === undefined || made >= whole) return bill
  return { ...bill, output: Math.ceil((bill.output * made) / whole) }
}
