import { memberOf } from '../catalogue/price.ts'
import type { ProtocolName } from './protocol.ts'
import { memberIn, spliceJson } from './splice-json.ts'

type Told = {
  readonly protocol: ProtocolName
  /** By the name that the caller asked for. */
  readonly model: string
  /** What it was charged, in decimal USD; left out of an answer that does not say what it used. */
  readonly cost: string
}

const OPEN_BRACE = 0x7b

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
  const set: Record<string, string> = {}
  const named = memberOf(json, 'model')
  if (typeof named === 'string' && named !== model) set.model = JSON.stringify(model)
  const name = protocol.startsWith('gemini') ? 'usageMetadata' : 'usage'
  const usage = isObject(memberOf(json, name)) ? memberIn(body, name) : undefined
  if (usage?.[0] === OPEN_BRACE) set[name] = spliceJson(usage, { cost_usd: JSON.stringify(cost) }).toString()
  return Object.keys(set).length === 0 ? body : spliceJson(body, set)
}

function isObject(value: unknown): boolean {
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
