import type { Deviance } from '../../deviants.ts'
import { isObject, type JsonObject } from '../../json.ts'
import { foldedJson } from '../../loose-reading.ts'
import { given, isWholeNumber, type Question } from './question.ts'

const LENGTHS = ['n_predict', 'max_output_tokens', 'min_tokens']
const TOKENS_LIMIT = 1_000_000
const PRESET_TOKENS = 1000
const PROVIDER_TIMES = 2
const RETRIES_LIMIT = 10

/** The body as a vendor reads it that takes what is in `extra_body` for members of its own. */
export function bodyWithExtras(body: unknown, { knowsExtras, foldsCase }: Deviance): unknown {
  if (!knowsExtras || !isObject(body) || !isObject(body.extra_body)) return body
  const whole = { ...body, ...body.extra_body }
  return foldsCase ? foldedJson(whole) : whole
}

/** The question with what its extra members ask for. */
export function withExtras<Q extends Question>(question: Q, body: unknown, { knowsExtras }: Deviance): Q {
  if (!knowsExtras || !isObject(body)) return question
  const thought = countIn(body, 'thinking_budget')
  const lengths = LENGTHS.map((name) => countIn(body, name))
  const longest = Math.max(0, ...lengths)
  const most = question.maxTokens === undefined ? undefined : Math.max(question.maxTokens, longest) + thought
  const isLonger = longest > (question.maxTokens ?? 0)
  return {
    ...question,
    maxTokens: most,
    reasoningTokens: Math.max(question.reasoningTokens, thought),
    extras: {
      outputTokens: isLonger ? longest + thought : undefined,
      inputTokens: given(body.preset) ? PRESET_TOKENS : 0,
      times: (given(body.provider) ? PROVIDER_TIMES : 1) * (1 + Math.min(countIn(body, 'num_retries'), RETRIES_LIMIT)),
    },
  }
}

function countIn(body: JsonObject, name: string): number {
  const value = body[name]
  return isWholeNumber(value, 1) ? Math.min(value, TOKENS_LIMIT) : 0
}
