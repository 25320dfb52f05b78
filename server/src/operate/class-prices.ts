import type { ClassPricesText } from '../pricing/class-prices.ts'

/** What operators write of prices beyond the plain classes, as options of `farebox models price`. */
export type ClassOptions = {
  readonly class?: readonly string[] | undefined
  readonly above?: readonly string[] | undefined
  readonly tier?: readonly string[] | undefined
  readonly tool?: readonly string[] | undefined
  readonly toolCalls?: string | undefined
  readonly toolInput?: string | undefined
}

const A_CLASS = 'class=usd, such as cache_write_1h=6'
const AN_ABOVE = 'tokens:class=usd,…, such as 200000:input=6,output=22.5'
export const A_TIER = 'tier=times, such as flex=0.5x, or tier:class=usd,…, or tier>tokens:class=usd,…'
const A_TOOL = 'tool=usd, such as web_search=0.01'

/** The object that is kept, or undefined where nothing of it is given. What it says is judged by who keeps it. */
export function classPricesIn(options: ClassOptions): ClassPricesText | undefined {
  const { class: classes = [], above = [], tier = [], tool = [], toolCalls, toolInput } = options
  const text = {
    ...(classes.length > 0 && { rates: ratesIn(classes, A_CLASS) }),
    ...(above.length > 0 && { above: stepsIn(above, AN_ABOVE) }),
    ...(tier.length > 0 && { tiers: tiersIn(tier) }),
    ...(tool.length > 0 && { tools: ratesIn(tool, A_TOOL) }),
    ...(toolCalls !== undefined && { tool_calls: wholeNumber('--tool-calls', toolCalls) }),
    ...(toolInput !== undefined && { tool_input: wholeNumber('--tool-input', toolInput) }),
  }
  return Object.keys(text).length === 0 ? undefined : text
}

type Rates = Readonly<Record<string, string>>
type Step = { readonly tokens: number; readonly rates: Rates }

function ratesIn(texts: readonly string[], such: string): Rates {
  const rates: Record<string, string> = {}
  for (const text of texts) {
    const [, name = '', usd = ''] = /^([a-z][a-z0-9_]*)=([0-9.]+)$/.exec(text) ?? []
    if (name === '') throw new Error(`${JSON.stringify(text)} must be ${such}`)
    if (Object.hasOwn(rates, name)) throw new Error(`${name} is given twice`)
    rates[name] = usd
  }
  return rates
}

function stepsIn(texts: readonly string[], such: string): Step[] {
  const steps = texts.map((text) => {
    const [, tokens = '', rates = ''] = /^(\d{1,9}):(.+)$/.exec(text) ?? []
    if (tokens === '') throw new Error(`${JSON.stringify(text)} must be ${such}`)
    return { tokens: Number(tokens), rates: ratesIn(rates.split(','), such) }
  })
  return steps.toSorted((a, b) => a.tokens - b.tokens)
}

/** A letter first: `__proto__` is no name that an object keeps. */
const tierNameIn = (text: string) => /^[a-z][a-z0-9_]*/.exec(text)?.[0] ?? ''

type Tier = { times: string } | { rates: Rates; above: Step[] }

function tiersIn(texts: readonly string[]): Readonly<Record<string, Tier>> {
  const names = new Set(texts.map(tierNameIn))
  return Object.fromEntries([...names].map((name) => [name, tierIn(name, texts)]))
}

/** A multiple of the standard prices, or its own: those of any input, and those of each step. */
function tierIn(name: string, texts: readonly string[]): Tier {
  const own = texts.filter((text) => tierNameIn(text) === name).map((text) => text.slice(name.length))
  const [first = ''] = own
  const [, times] = /^=([0-9.]+)x$/.exec(first) ?? []
  if (times !== undefined && own.length === 1) return { times }
  const plain = own.filter((text) => text.startsWith(':'))
  const steps = own.filter((text) => text.startsWith('>'))
  const [only = '', ...others] = plain
  if (name === '' || only === '' || others.length > 0 || plain.length + steps.length !== own.length)
    throw new Error(`${JSON.stringify(name + first)} must be ${A_TIER}`)
  return {
    rates: ratesIn(only.slice(1).split(','), A_TIER),
    above: stepsIn(
      steps.map((text) => text.slice(1)),
      A_TIER,
    ),
  }
}

function wholeNumber(option: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${option} must be a whole number above 0`)
  return Number(text)
}
