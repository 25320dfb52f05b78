import { isTask, MODEL_IN_PATH, type Names, type Operation, spell } from '../../catalogue/operation.ts'
import type { HeaderNames } from '../../wording/header-names.ts'
import { jsonText } from '../json-text.ts'
import type { ShownPrice } from './words.ts'

/** A call to begin with, as its HTTP caller sends it. */
export type SampleCall = {
  readonly operation: Operation
  /** With its query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** Null for what is asked by a query alone. */
  readonly body: Readonly<Record<string, unknown>> | null
  /** All that is given to it, as tools and clients take it. */
  readonly input: Readonly<Record<string, unknown>>
}

type Spelling = {
  readonly names: Names
  readonly headerNames: Pick<HeaderNames, 'async'>
}

/** Stands in examples where the name of a model belongs. */
const MODEL = '<model>'

/** Whether an example needs a model before it can be called. */
export function needsModel(example: Readonly<Record<string, unknown>>): boolean {
  return JSON.stringify(example).includes(MODEL)
}

export function sampleCall(
  operation: Operation,
  example: Readonly<Record<string, unknown>>,
  model: string | undefined,
  { names, headerNames }: Spelling,
): SampleCall {
  const input = membersFilled(example, model ?? 'your-model')
  const { model: named, ...rest } = input
  const isInPath = operation.path.includes(MODEL_IN_PATH)
  const path = spell(operation.path, { ...names, model: String(named ?? MODEL) })
  const headers = isTask(operation) ? { [headerNames.async]: 'enable' } : {}
  if (operation.method === 'GET') return { operation, target: `${path}?${queryOf(input)}`, headers, body: null, input }
  const target = operation.protocol === 'gemini_stream' ? `${path}?alt=sse` : path
  return { operation, target, headers, body: isInPath ? rest : input, input }
}

function filled(value: unknown, model: string): unknown {
  if (typeof value === 'string') return value.replace(MODEL, model)
  if (Array.isArray(value)) return value.map((one) => filled(one, model))
  if (typeof value !== 'object' || value === null) return value
  return membersFilled(value, model)
}

function membersFilled(value: object, model: string): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, model)]))
}

function queryOf(input: SampleCall['input']): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(input)) query.append(name, String(value))
  return query.toString()
}

export function curlOf({ target, headers, body, operation }: SampleCall): string {
  const lines = [
    `curl -i "$BASE_URL${target}"`,
    '-H "Authorization: Bearer $API_KEY"',
    ...Object.entries(headers).map(([name, value]) => `-H "${name}: ${value}"`),
    ...(body === null
      ? []
      : ['-H "Content-Type: application/json"', `-d '${jsonText(body, '  ').replaceAll("'", "'\\''")}'`]),
  ]
  const method = body === null && operation.method !== 'GET' ? [`-X ${operation.method}`] : []
  return [...lines, ...method].join(' \\\n  ')
}

export function typescriptOf({ operation, input, target, headers, body }: SampleCall, provider: string): string {
  const names = provider === 'Farebox' ? '' : `\n  names: { provider: ${quoted(provider)} },`
  const made = `import { env } from 'node:process'
import { Farebox } from '@farebox/client'

const farebox = new Farebox({
  baseUrl: env.BASE_URL ?? '',
  apiKey: env.API_KEY ?? '',${names}
})`
  // A stream passes through the client's own fetch, which sees to idempotency and tells the cost at its end.
  if (operation.protocol === 'gemini_stream')
    return `${made}
const answer = await farebox.fetch(\`\${env.BASE_URL}${target}\`, {
  method: 'POST',
  headers: ${object({ 'content-type': 'application/json', ...headers }, '  ')},
  body: JSON.stringify(${object(body, '  ')}),
})
console.log(await answer.text())`
  if (isTask(operation))
    return `${made}
const { data, cost } = await farebox.tasks.run(${object(input, '')}, { maxCostUsd: '${TASK_CAP_USD}' })
console.log(data.output.task_status, cost?.usd)`
  return `${made}
const { data, cost } = await farebox.call(${quoted(operation.id)}, ${object(input, '')})
console.log(data, cost?.usd)`
}

const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`

/** As TypeScript writes it: names without quotes where they need none, texts in single ones. */
function object(value: unknown, indent: string): string {
  return jsonText(value, indent).replace(/"((?:[^"\\]|\\.)*)"(:)?/g, (_, text: string, colon?: string) =>
    colon !== undefined && /^[A-Za-z_]\w*$/.test(text)
      ? `${text}:`
      : `${quoted(JSON.parse(`"${text}"`))}${colon ?? ''}`,
  )
}

/** With what every Python has. */
export function pythonOf({ target, headers, body }: SampleCall, { cost }: Pick<HeaderNames, 'cost'>): string {
  const sent = [
    '"Authorization": "Bearer " + os.environ["API_KEY"],',
    ...(body === null ? [] : ['"Content-Type": "application/json",']),
    ...Object.entries(headers).map(([name, value]) => `"${name}": "${value}",`),
  ]
  return `import ${body === null ? '' : 'json, '}os, urllib.request

request = urllib.request.Request(
    os.environ["BASE_URL"] + "${target}",${body === null ? '' : `\n    data=json.dumps(${jsonText(body, '    ')}).encode(),`}
    headers={
        ${sent.join('\n        ')}
    },
)
with urllib.request.urlopen(request) as answer:
    print(answer.headers["${cost}"])
    print(answer.read().decode())`
}

/** A cap for what costs a fraction of a cent: above what the sample can cost by any model that is not dear. */
const CAP_USD = 0.05
/** A video costs dollars. */
const TASK_CAP_USD = 5
/** An account's plan may multiply the published price. */
const CAP_OF_PRICE = 2
const CENTS = 100

/** What an agent gives the tool `use`, with a cap that lets the sample through: from its own price, where it has one. */
export function agentOf({ operation, input }: SampleCall, price: ShownPrice): string {
  return JSON.stringify(
    { operation_id: operation.id, arguments: input, max_price_usd: capOf(operation, price) },
    null,
    2,
  )
}

function capOf(operation: Operation, price: ShownPrice): number {
  if (isTask(operation)) return TASK_CAP_USD
  // What is sold by the token costs what the sample has of them, which is little.
  if (price.by !== 'unit' || price.million !== undefined) return CAP_USD
  return Math.max(CAP_USD, Math.ceil(Number(price.usd) * CAP_OF_PRICE * CENTS) / CENTS)
}
