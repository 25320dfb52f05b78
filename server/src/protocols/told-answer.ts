import { memberOf } from '../catalogue/price.ts'
import { beforeSpace } from './json-bytes.ts'
import type { ProtocolName } from './protocol.ts'
import { type Edit, edited, type Range, rangesIn, spliceJson } from './splice-json.ts'

type Told = {
  readonly protocol: ProtocolName
  /** By the name that the caller asked for. */
  readonly model: string
  /** What it was charged, in decimal USD; left out of an answer that does not say what it used. */
  readonly cost: string
}

/**
 * A whole answer as its caller is given it: with the model's name as it was asked for, and what it cost in its usage, where the
 * cost of a stream stands too. Every other byte stays as it came.
 */
export function toldAnswer(body: Buffer, json: unknown, told: Told): Buffer {
  try {
    return spliced(body, json, told)
  } catch {
    // It is paid for: where its bytes can't be changed, it is given as it came.
    return body
  }
}

function spliced(body: Buffer, json: unknown, { protocol, model, cost }: Told): Buffer {
  const usageName = protocol.startsWith('gemini') ? 'usageMetadata' : 'usage'
  const named = memberOf(json, 'model')
  const isRenamed = typeof named === 'string' && named !== model
  const usage = memberOf(json, usageName)
  if (!isRenamed && !isObject(usage)) return body
  const [modelAt, usageAt] = rangesIn(body, ['model', usageName])
  const edits: Edit[] = []
  if (isRenamed && modelAt !== undefined) edits.push({ ...modelAt, text: JSON.stringify(model) })
  if (isObject(usage) && usageAt !== undefined) edits.push(costIn(body, usageAt, usage, cost))
  return edited(
    body,
    edits.sort((one, other) => one.start - other.start),
  )
}

/** The cost as the last member of the usage, or in place of one that its upstream gave. */
function costIn(body: Buffer, { start, end }: Range, usage: object, cost: string): Edit {
  const text = JSON.stringify(cost)
  if (Object.hasOwn(usage, 'cost_usd'))
    return { start, end, text: spliceJson(body.subarray(start, end), { cost_usd: text }).toString() }
  const last = beforeSpace(body, end - 1)
  return { start: last, end: last, text: `${Object.keys(usage).length === 0 ? '' : ','}"cost_usd":${text}` }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What may stand in a header. */
const NAME = /^[!-~]{1,200}$/

/** The model by the name that the upstream gives it in its answer, or else by the one that it was asked for. */
export function upstreamModelIn(json: unknown, asked: string): string | undefined {
  return [memberOf(json, 'model'), memberOf(json, 'modelVersion'), asked].find(isName)
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name)
}
