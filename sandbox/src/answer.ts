import { creditsBill } from './bill.ts'
import { isObject, type JsonObject } from './json.ts'
import { hashOf, Random } from './random.ts'
import type { Asked, Reply, Upstream } from './upstream.ts'

/** What a vendor answers to one kind of request: all that an operation needs which passes through and is paid by the call. */
export type Answer = {
  /** By the slot that the operation asks. A vendor that has no file of its own is made of its answers. */
  readonly upstream: string
  readonly method: 'GET' | 'POST'
  /** As the operation has it: {names} are any word. */
  readonly path: string
  /** The header in which a vendor made of answers takes its key. */
  readonly credential: 'authorization' | 'x-api-key' | 'api-key'
  /** One of these has to be given. */
  readonly needs: readonly [string, ...string[]]
  /** Made up from the query of a GET or the body of a POST. The same request gets the same numbers. */
  readonly body: (given: JsonObject, random: Random) => JsonObject
}

/** A vendor that has answers beside its own. */
export function withAnswers(vendor: Upstream, answers: readonly Answer[]): Upstream {
  const forms = answers.map((answer) => ({ answer, pattern: patternOf(answer.path) }))
  const at = (path: string) => forms.filter(({ pattern }) => pattern.test(path)).map(({ answer }) => answer)
  return {
    ...vendor,
    methodOf(path) {
      const own = vendor.has(path) ? [vendor.methodOf(path)] : []
      const [first, ...others] = new Set([...at(path).map(({ method }) => method), ...own])
      return first === undefined || others.length > 0 ? 'either' : first
    },
    has: (path) => at(path).length > 0 || vendor.has(path),
    answer(asked) {
      const answer = at(asked.path).find(({ method }) => method === asked.method)
      return answer === undefined ? vendor.answer(asked) : replyOf(answer, vendor, asked)
    },
  }
}

/** A vendor that is nothing but its answers, with the plainest of errors. */
export function vendorOf(name: string, answers: readonly Answer[]): Upstream {
  const headers = [...new Set(answers.map(({ credential }) => credential))]
  const errorBody = (_status: number, message: string) => ({ error: message, message })
  const vendor: Upstream = {
    name,
    methodOf: () => 'either',
    credentials: headers.map((header) => ({ header, scheme: header === 'authorization' ? 'bearer' : 'plain' })),
    has: () => false,
    answer: () => ({ status: 404, body: errorBody(404, 'Not Found'), tokens: null, isBilled: false }),
    errorBody,
  }
  return withAnswers(vendor, answers)
}

function replyOf({ needs, body }: Answer, { name, errorBody }: Upstream, asked: Asked): Reply {
  const { method, path, parameters, seed } = asked
  const sent = isObject(asked.body) ? asked.body : {}
  const given = method === 'GET' ? Object.fromEntries(parameters) : sent
  if (!needs.some((member) => given[member]))
    return {
      status: 400,
      body: errorBody(400, `${needs.join(' or ')} must be given`, asked),
      tokens: null,
      isBilled: false,
    }
  const random = new Random(hashOf(seed, name, path, JSON.stringify(given)))
  return { status: 200, body: body(given, random), tokens: null, isBilled: true, bill: creditsBill(1) }
}

function patternOf(path: string): RegExp {
  const plain = path.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${plain.join('[^/]+')}$`)
}
