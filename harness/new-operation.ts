import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { UPSTREAM_NAMES } from '../sandbox/src/upstream.ts'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import { isSoldByUnit, type Names, spell, type Upstream } from '../server/src/catalogue/operation.ts'
import { formatUsd, usd } from '../server/src/kernel/money.ts'
import { contractHere, defaultNames } from './recorded-contract.ts'

/** What somebody says of an operation that is to be made: a data endpoint with a price for each call. */
export type Wanted = {
  readonly id: string
  readonly summary: string
  readonly asks: string
  readonly price: string
  readonly category: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly string[]
  readonly slot: string
  readonly upstreamPath: string
  /** Undefined where it was not said. */
  readonly credential: string | undefined
}

/** The files of a new operation, by their paths from the root of the project. */
export type Made = {
  readonly operation: string
  readonly answer: string
  readonly test: string
}

export const LISTS = {
  operations: 'server/src/catalogue/catalogue.ts',
  answers: 'sandbox/src/answers.ts',
  words: 'server/src/config/reserved-segments.ts',
} as const
export const CATEGORIES = ['social', 'finance', 'traffic'] as const
const CREDENTIALS: readonly Upstream['credentialHeader'][] = ['x-api-key', 'api-key', 'authorization']
const USUAL_CREDENTIAL = 'x-api-key'
const METHODS = ['GET', 'POST']

const DATA = catalogue.operations.filter(isSoldByUnit)

function fileOf(id: string): string {
  return id.replaceAll('_', '-')
}

export function filesOf(id: string): Made {
  return {
    operation: `server/src/catalogue/operations/${fileOf(id)}.ts`,
    answer: `sandbox/src/answers/${fileOf(id)}.ts`,
    test: `test/acceptance/operations/${fileOf(id)}.test.ts`,
  }
}

/** The folder of the project, and the ids that it has. */
export type Project = { readonly root: string; readonly ids: ReadonlySet<unknown> }

/** Why it can't be made: a sentence for each reason. */
export function problemsWith(wanted: Wanted, project: Project): readonly string[] {
  if (project.ids.has(wanted.id)) return [`There is an operation ${wanted.id} already. Choose another id.`]
  return [
    ...wordsWrong(wanted),
    ...placesWrong(wanted, defaultNames()),
    ...upstreamWrong(wanted),
    ...taken(wanted, project.root),
  ]
}

function* wordsWrong({ id, summary, asks, price, category, parameters }: Wanted): Iterable<string> {
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)+$/.test(id) || id.length > 63)
    yield `The id "${id}" must be two or more lower-case words with _ between them, such as weather_forecast.`
  if (summary.length < 10 || /[\n\r.]$/.test(summary) || summary.includes('\n'))
    yield 'Give --summary "what it does", on one line of ten letters or more and without a full stop.'
  if (!/\w/.test(asks)) yield 'Give --asks "words that people use for it".'
  if (!isPrice(price)) yield 'Give --price, in USD for a call, such as 0.004: above 0, with at most nine decimals.'
  if (!CATEGORIES.some((one) => one === category)) yield `Give --category: one of ${CATEGORIES.join(', ')}.`
  for (const name of parameters.filter((one) => !/^[a-zA-Z]\w*$/.test(one)))
    yield `The parameter "${name}" must be letters, digits and _, such as place.`
  if (new Set(parameters).size < parameters.length) yield 'Name each parameter once.'
}

function isPrice(text: string): boolean {
  try {
    return usd(text) > 0n
  } catch {
    return false
  }
}

function* placesWrong({ method, path: at, upstreamPath }: Wanted, names: Names): Iterable<string> {
  if (!METHODS.includes(method)) yield `The method is ${METHODS.join(' or ')}, not ${method}.`
  if (!/^\/apis\/v1(\/([a-z0-9][a-z0-9_-]*|\{\w+\}))+$/.test(at))
    yield `The path "${at}" must begin with /apis/v1/ and have lower-case words, such as /apis/v1/weather/forecast.`
  if (!/^(\/([\w.-]+|\{\w+\}))+$/.test(upstreamPath))
    yield `The path of the upstream "${upstreamPath}" must begin with / and be without a query, such as /v1/forecast.`
  const word = ownWordOf(at)
  if (word !== undefined && Object.values(names).includes(word))
    yield `The word "${word}" in the path is what a setting spells by default. Choose another --path.`
  for (const [, name = ''] of `${at}${upstreamPath}`.matchAll(/\{(\w+)\}/g))
    if (!Object.hasOwn(names, name))
      yield `Nothing spells {${name}}. These names are configured: ${Object.keys(names).join(', ')}.`
}

function* upstreamWrong({ slot, credential, method, upstreamPath }: Wanted): Iterable<string> {
  const beside = DATA.filter(({ upstream }) => upstream.slot === slot)
  if (!/^[a-z][a-z0-9_]*$/.test(slot) || slot.length > 63)
    yield `The upstream "${slot}" must be lower-case letters, digits and _, such as weather.`
  else if (beside.length === 0 && UPSTREAM_NAMES.some((one) => one === slot))
    yield `The upstream ${slot} is not one of data. Choose another with --upstream.`
  if (beside.some(({ actsFor }) => actsFor !== undefined))
    yield `The upstream ${slot} acts for users who linked an account, which this template does not make.`
  const [one] = beside
  const twin = beside.find(({ upstream, method: its }) => upstream.path === upstreamPath && its === method)
  if (twin !== undefined) yield `${twin.id} asks ${method} ${upstreamPath} of ${slot} already.`
  if (credential !== undefined && !CREDENTIALS.some((header) => header === credential))
    yield `The credential is sent in one of ${CREDENTIALS.join(', ')}.`
  else if (credential !== undefined && one !== undefined && one.upstream.credentialHeader !== credential)
    yield `The upstream ${slot} takes its credential in ${one.upstream.credentialHeader}: leave --credential out.`
}

function* taken({ id, method, path: at }: Wanted, root: string): Iterable<string> {
  const there = Object.values(filesOf(id)).filter((file) => existsSync(path.join(root, file)))
  if (there.length > 0) yield `${there.join(' and ')} ${there.length === 1 ? 'is' : 'are'} there already.`
  const twin = catalogue.operations.find((one) => one.method === method && one.path === at)
  if (twin !== undefined) yield `${method} ${at} is ${twin.id} already. Choose another --path.`
}

/** Of everything that callers can ask for, sold or not. */
export function idsOfContract(): ReadonlySet<unknown> {
  const { paths } = Object(JSON.parse(contractHere().bytes.toString('utf8')))
  const methods = Object.values(Object(paths)).flatMap((one) => Object.values(Object(one)))
  return new Set(methods.map((one) => Object(one).operationId))
}

/** Writes the three files, and enters the operation and its answer in their lists. They want formatting after that. */
export function makeOperation(wanted: Wanted, root: string): Made {
  const made = filesOf(wanted.id)
  const credential = credentialOf(wanted)
  const write = (file: string, text: string) => {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
    writeFileSync(path.join(root, file), text, { flag: 'wx' })
  }
  write(made.operation, operationText(wanted, credential))
  write(made.answer, answerText(wanted, credential))
  write(made.test, testText(wanted))
  const constant = constantOf(wanted.id)
  enter(
    path.join(root, LISTS.operations),
    `import { ${constant} } from './operations/${fileOf(wanted.id)}.ts'`,
    constant,
  )
  enter(path.join(root, LISTS.answers), `import { ${constant} } from './answers/${fileOf(wanted.id)}.ts'`, constant)
  reserve(path.join(root, LISTS.words), wanted.path)
  return made
}

/** As the other operations of its upstream send it. */
function credentialOf({ slot, credential }: Wanted): string {
  return (
    DATA.find(({ upstream }) => upstream.slot === slot)?.upstream.credentialHeader ?? credential ?? USUAL_CREDENTIAL
  )
}

function constantOf(id: string): string {
  return id.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** At the end of the list, which is the last in its file. */
function enter(file: string, line: string, constant: string): void {
  const text = readFileSync(file, 'utf8')
  const end = text.lastIndexOf(']')
  const entries = text.slice(0, end).replace(/,?\s*$/, '')
  writeFileSync(file, `${line}\n${entries}, ${constant}${text.slice(end)}`)
}

/** The first word of a path below /apis/v1, where it is none that a setting spells. */
export function ownWordOf(at: string): string | undefined {
  return /^\/apis\/v1\/([a-z0-9][a-z0-9_-]*)/.exec(at)?.[1]
}

/** No setting may spell it from now on: two operations would have one path. */
function reserve(file: string, at: string): void {
  const word = ownWordOf(at)
  const text = readFileSync(file, 'utf8')
  if (word === undefined || text.includes(`'${word}'`)) return
  const end = text.lastIndexOf(']')
  writeFileSync(file, `${text.slice(0, end).replace(/,?\s*$/, '')}, '${word}'${text.slice(end)}`)
}

const quoted = (text: string) => `'${text.replaceAll(/[\\']/g, '\\$&')}'`
const EXAMPLE = 'example'

function operationText(wanted: Wanted, credential: string): string {
  const { id, summary, asks, price, category, method, path: at, parameters, slot, upstreamPath } = wanted
  return `import { z } from 'zod'
import { usd } from '../../kernel/money.ts'
import { rational } from '../../kernel/rational.ts'
import { defineOperation } from '../operation.ts'
import { memberOf, perCall } from '../price.ts'

export const ${constantOf(id)} = defineOperation({
  id: '${id}',
  summary: ${quoted(summary)},
  asks: ${quoted(asks)},
  example: { ${parameters.map((name) => `${name}: '${EXAMPLE}'`).join(', ')} },
  category: '${category}',
  method: '${method}',
  path: '${at}',
  dialect: 'data',
  limits: [],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 1, refreshes: 0 },
  // What else is given passes through. What would change the provider's price must be refused by name: see \`refuses\`.
  input: z.looseObject({ ${parameters.map((name) => `${name}: z.string().min(1)`).join(', ')} }),
  output: z.looseObject({ data: z.looseObject({}) }),
  price: perCall({
    unitPrice: rational(usd('${price}')),
    // As the provider charges: for an answer that has what was asked for.
    isCharged: ({ status, json }) => status === 200 && memberOf(json, 'data') !== undefined,
  }),
  upstream: {
    slot: '${slot}',
    path: '${upstreamPath}',
    adapter: 'pass_through',
    credentialHeader: '${credential}',
    totalMs: 30_000,
    maxBodyBytes: 4 * 1_048_576,
  },
})
`
}

function answerText({ id, method, parameters, slot, upstreamPath }: Wanted, credential: string): string {
  return `import type { Answer } from '../answer.ts'

export const ${constantOf(id)}: Answer = {
  upstream: '${slot}',
  method: '${method}',
  path: '${upstreamPath}',
  credential: '${credential}',
  needs: [${parameters.map(quoted).join(', ')}],
  body: (given, random) => ({ data: { ...given, value: random.between(1, 1_000_000) } }),
}
`
}

function testText({ id, price, method, path: at, parameters }: Wanted): string {
  const place = spell(at, defaultNames())
  const cost = formatUsd(usd(price))
  const [first = ''] = parameters
  return `import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { ask, call, errorOf, makeCustomer, startInstallation } from '../installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const { secret } = await makeCustomer(pool)

describe('${method} ${at}', () => {
  it('answers what was asked for, for ${price} USD', async () => {
    const { status, json, costUsd } = await call(url, secret, '${id}')
    assert.deepEqual([status, Object(json.data).${first}, costUsd], [200, '${EXAMPLE}', '${cost}'])
  })

  it('is quoted at what it costs', async () => {
    const headers = { 'x-farebox-cost-mode': 'quote' }
    const { status, json } = await call(url, secret, '${id}', '', { headers })
    assert.deepEqual([status, Object(json.max).usd], [200, '${cost}'])
  })

  it('costs nothing where the provider gives nothing', async () => {
    for (const directive of ['status=404', 'status=500', 'garbage', 'empty']) {
      const { costUsd } = await call(url, secret, '${id}', \`sandbox:\${directive}\`)
      assert.equal(costUsd, '0.000000000', directive)
    }
  })

  it('is refused without \`${first}\`, and asks nobody', async () => {
    const before = (await sandbox.journal()).length
    const told = await ask(url, secret, '${place}'${method === 'POST' ? ', { body: {} }' : ''})
    assert.deepEqual([told.status, errorOf(told).code], [400, 'invalid_request'])
    assert.match(String(errorOf(told).message), /${first}/)
    assert.equal((await sandbox.journal()).length, before)
  })
})
`
}
