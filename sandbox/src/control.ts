import { PLAIN } from './deviants.ts'
import { applyDirectives } from './directives.ts'
import type { Written } from './find-directives.ts'
import { isObject } from './json.ts'
import { planFor } from './plan.ts'
import { isCredential, type Upstream } from './upstream.ts'
import { Prefixes } from './upstreams/models/prefixes.ts'
import { Platform } from './upstreams/platform-state.ts'
import { VideoTasks } from './upstreams/video-tasks.ts'
import { UPSTREAMS } from './upstreams.ts'

export type Fault = {
  readonly upstream: string
  readonly directives: readonly Written[]
  /** Only for requests whose path has this in it. */
  readonly path?: string
  /** Only for requests with this credential. */
  readonly credential?: string
  /** For how many of the next requests. */
  readonly times: number
}

const TIMES_LIMIT = 1_000_000
const FAULTS_LIMIT = 1000
const DIRECTIVES_LIMIT = 16
const PATH_LIMIT = 256
const NONE: readonly Written[] = []

/** Directives for the next requests of an upstream, for faults that no caller's text could ask for. */
export class Control {
  #faults: Fault[] = []

  /** The directives for a request that has just come in; each fault counts down as it is taken, the oldest first. */
  take(upstream: string, path: string, credential = ''): readonly Written[] {
    const at = this.#faults.findIndex(
      (fault) =>
        fault.upstream === upstream &&
        path.includes(fault.path ?? '') &&
        (fault.credential ?? credential) === credential,
    )
    const fault = this.#faults[at]
    if (fault === undefined) return NONE
    if (fault.times > 1) this.#faults[at] = { ...fault, times: fault.times - 1 }
    else this.#faults.splice(at, 1)
    return fault.directives
  }

  /** Takes a fault as it came over HTTP; says what is wrong with it, if anything is. */
  add(value: unknown): string | undefined {
    const fault = faultIn(value)
    if (typeof fault === 'string') return fault
    const upstream = UPSTREAMS.get(fault.upstream)
    if (upstream === undefined) return unknownUpstream()
    if (this.#faults.length >= FAULTS_LIMIT) return `there are ${FAULTS_LIMIT} faults waiting already`
    const wrong = wrongWith(fault.directives, upstream)
    if (wrong === undefined) this.#faults.push(fault)
    return wrong
  }

  waiting(): readonly Fault[] {
    return this.#faults
  }

  clear(): void {
    this.#faults = []
  }
}

function faultIn(value: unknown): Fault | string {
  if (!isObject(value)) return 'send { upstream, directives, times, path, credential }'
  const { upstream, directives, times = 1, path, credential } = value
  if (typeof upstream !== 'string') return unknownUpstream()
  if (!Array.isArray(directives) || directives.length === 0 || directives.length > DIRECTIVES_LIMIT)
    return 'directives is a list such as ["status=503", "retry-after=2"]'
  const written: string[] = []
  for (const one of directives) if (typeof one === 'string') written.push(one)
  if (written.length < directives.length) return 'directives is a list of texts'
  if (!(Number.isSafeInteger(times) && Number(times) >= 1 && Number(times) <= TIMES_LIMIT))
    return `times is a whole number from 1 to ${TIMES_LIMIT}`
  if (path !== undefined && (typeof path !== 'string' || path.length > PATH_LIMIT)) return 'path is a part of a path'
  if (credential !== undefined && (typeof credential !== 'string' || !isCredential(credential)))
    return 'credential is one that the sandbox takes'
  return {
    upstream,
    directives: written,
    ...(path !== undefined && { path }),
    ...(credential !== undefined && { credential }),
    times: Number(times),
  }
}

function unknownUpstream(): string {
  return `upstream is one of ${[...UPSTREAMS.keys()].join(', ')}`
}

/** Tries the directives on an answer that is never sent, so that a misspelt one is told now and not in the test after. */
function wrongWith(directives: readonly Written[], upstream: Upstream): string | undefined {
  const asked = {
    method: '',
    path: '',
    parameters: new URLSearchParams(),
    headers: {},
    body: undefined,
    form: new URLSearchParams(),
    bodySha256: '',
    seed: 0,
    nowMs: 0,
    prefixes: new Prefixes(),
    videos: new VideoTasks(),
    platform: new Platform(),
    deviance: PLAIN,
  }
  const plan = planFor(upstream, asked, { status: 200, body: {}, tokens: null, isBilled: false })
  return applyDirectives(plan, directives)
}
