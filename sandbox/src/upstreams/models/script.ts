import { type Value, WrongValue } from '../../directive-values.ts'
import { isObject } from '../../json.ts'
import { isModelName, objectsIn, type Question } from './question.ts'

/** A call of one of the caller's tools, as the model writes it. */
export type Call = { readonly name: string; readonly json: string }

/** What a model says in one answer: a text, calls of tools, or a text and then calls. */
export type Turn = { readonly text: string; readonly calls: readonly Call[] }

export type Script = readonly Turn[]

const SCRIPT_LIMIT = 16_384
const TURNS_LIMIT = 32
const CALLS_LIMIT = 16
const TAKES = `takes base64url of a list of 1 to ${TURNS_LIMIT} turns, {"text", "calls": [{"name", "arguments"}]}`
/** Stands in a turn's text for what the tools have returned last. */
const RESULT = '{result}'

/** A script as a directive has it; it can't be plain JSON, since its value ends at a blank or a comma. */
export function scriptIn(value: Value): Script {
  const turns = value !== undefined && value.length <= SCRIPT_LIMIT ? jsonIn(value) : undefined
  if (!Array.isArray(turns) || turns.length === 0 || turns.length > TURNS_LIMIT) throw new WrongValue(TAKES)
  return turns.map(turnIn)
}

function jsonIn(value: string): unknown {
  try {
    return JSON.parse(Buffer.from(value, 'base64url').toString())
  } catch {
    return undefined
  }
}

function turnIn(turn: unknown): Turn {
  const { text = '', calls = [], ...others } = isObject(turn) ? turn : { text: undefined, calls: undefined, turn }
  const isRight = typeof text === 'string' && Array.isArray(calls) && calls.length <= CALLS_LIMIT
  const written = objectsIn(calls).flatMap(callIn)
  if (!isRight || Object.keys(others).length > 0 || written.length < calls.length) throw new WrongValue(TAKES)
  return { text, calls: written }
}

/** Arguments that are a text are sent as they stand, as tools want them that are no functions. */
function callIn({ name, arguments: given = {} }: { name?: unknown; arguments?: unknown }): Call[] {
  if (!isModelName(name)) return []
  return [{ name, json: typeof given === 'string' ? given : JSON.stringify(given) }]
}

/**
 * What the model says next: the first turn whose calls have not all been answered, by the number of results in the
 * conversation alone. Nothing of the script where it has ended, or calls a tool that the request does not offer: an
 * agent makes requests beside its task, which repeat its prompt.
 */
export function turnOf(script: Script, { toolResults, offered, toolResult }: Question): Turn | undefined {
  let answered = 0
  const turn = script.find(({ calls }) => {
    answered += calls.length
    return calls.length === 0 || answered > toolResults
  })
  if (turn === undefined) return undefined
  const { text, calls } = turn
  if (calls.some(({ name }) => !offered.some((tool) => tool.name === name))) return undefined
  return { text: text.replaceAll(RESULT, () => toolResult ?? ''), calls }
}
