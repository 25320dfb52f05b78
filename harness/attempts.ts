import type { JournalEntry } from '../sandbox/src/journal.ts'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import { isSoldByUnit, isTask, type Operation } from '../server/src/catalogue/operation.ts'
import { SPOKEN } from '../server/src/protocols/protocols.ts'
import { VIDEO } from '../server/src/protocols/video.ts'
import { upstreamOf } from './seed.ts'

/** Counts what upstreams were asked for each call, and says which calls asked more than their operation may. */
export type AttemptsTally = {
  readonly add: (entries: readonly AskedEntry[]) => void
  /** None where every call has kept within its bounds. */
  readonly problems: () => readonly string[]
}

/** What tells for which call an upstream was asked, and what. */
export type AskedEntry = Pick<JournalEntry, 'upstream' | 'method' | 'path' | 'request_id'>

type Counts = { readonly requests: Map<string, number>; refreshes: number; revocations: number }

/** Of what no operation of the catalogue asks, nobody has said that it may be asked twice. */
const UNKNOWN = 'no operation'
const REFRESH = /\/oauth2\/token$/
/** Takes back what a refresh gave, where the link was replaced meanwhile. */
const REVOCATION = /\/oauth2\/revoke$/
/** What becomes of a task is asked again and again, under the id of the call that created it. */
const ABOUT_A_TASK = /^\/(deviant\/[^/]+\/)?video\/tasks\//

/** What came without the id of a call, a call has not asked. */
export function createAttemptsTally(operations: readonly Operation[] = catalogue.operations): AttemptsTally {
  const forms = operations.map(formOf)
  const byId = new Map(operations.map((operation) => [operation.id, operation.attempts]))
  const calls = new Map<string, Counts>()

  function count({ upstream, method, path, request_id: id }: AskedEntry): void {
    if (id === null || ABOUT_A_TASK.test(path)) return
    const counts = calls.get(id) ?? { requests: new Map(), refreshes: 0, revocations: 0 }
    calls.set(id, counts)
    if (REFRESH.test(path)) counts.refreshes += 1
    else if (REVOCATION.test(path)) counts.revocations += 1
    else {
      const asked = forms.find((form) => form.method === method && form.isFor(upstream, path))?.id ?? UNKNOWN
      counts.requests.set(asked, (counts.requests.get(asked) ?? 0) + 1)
    }
  }

  function problemsOf(id: string, { requests, refreshes, revocations }: Counts): string[] {
    const [operation = UNKNOWN] = requests.keys()
    const most = byId.get(operation) ?? { requests: 1, refreshes: requests.size === 0 ? 1 : 0 }
    const asked = [...requests.values()].reduce((sum, one) => sum + one, 0)
    const about = `${id} (${[...requests.keys()].join(' and ') || 'nothing but a token'})`
    return [
      ...(requests.size > 1 ? [`${about} asked for what is no single operation`] : []),
      ...(asked > most.requests ? [`${about} made ${asked} requests, and ${most.requests} is the most`] : []),
      ...(refreshes > most.refreshes
        ? [`${about} refreshed ${refreshes} times, and ${most.refreshes} is the most`]
        : []),
      ...(revocations > refreshes ? [`${about} took back ${revocations} tokens of ${refreshes}`] : []),
    ]
  }

  return {
    add: (entries) => entries.forEach(count),
    problems: () => [...calls].flatMap(([id, counts]) => problemsOf(id, counts)),
  }
}

type Form = {
  readonly id: string
  readonly method: string
  readonly isFor: (upstream: string | null, path: string) => boolean
}

/** How an operation asks, below whatever address its upstream has. */
function formOf(operation: Operation): Form {
  const { id, method } = operation
  if (isSoldByUnit(operation)) {
    const path = patternOf(operation.upstream.path.split(/\{\w+\}/))
    const name = upstreamOf(operation.upstream.slot)
    return { id, method, isFor: (upstream, at) => upstream === name && path.test(at) }
  }
  const target = isTask(operation) ? VIDEO.createTarget : SPOKEN[operation.protocol].protocol.target(MODEL)
  const path = patternOf((target.split('?')[0] ?? '').split(MODEL))
  return { id, method, isFor: (_, at) => path.test(at) }
}

const MODEL = 'any-model'

/** What is between the parts, installations and callers spell. */
function patternOf(parts: readonly string[]): RegExp {
  const plain = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`${plain.join('.+')}$`)
}
