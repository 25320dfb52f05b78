import type { Members } from '../../catalogue/member-table.ts'
import { DIALECTS, type ProbedProtocol } from './dialects.ts'

/** One request of the probe. Its body comes from the route alone, so that a recording of it can be found again. */
export type Experiment = {
  readonly name: string
  /** What is special about it, as operators read it. */
  readonly sent: string
  readonly target: string
  readonly body: string
  readonly isStream: boolean
  /** Whether we close the connection at the first words. */
  readonly leaves: boolean
  /** The output limit that it has, by a member that has been seen to work; undefined where it may run to its natural end. */
  readonly limit: number | undefined
}

/** Above the natural answer, with room for a little reasoning. */
const HIGH_LIMIT = 512
const STREAM_LIMIT = 128

type Asked = { readonly protocol: ProbedProtocol; readonly upstreamModel: string }

/** The low limit under one name, alone. Nobody knows yet whether it works. */
export function limitExperiment(asked: Asked, member: string): Experiment {
  const members = { [member]: DIALECTS[asked.protocol].lowLimit }
  return { ...make(asked, `limit ${member}`, members), limit: undefined }
}

export function answerExperiment(asked: Asked, member: string | undefined): Experiment {
  return bounded(asked, 'answer', {}, member, HIGH_LIMIT)
}

export function reasoningExperiment(asked: Asked, member: string | undefined): Experiment | undefined {
  const { reasoning } = DIALECTS[asked.protocol]
  return reasoning && bounded(asked, 'reasoning', reasoning, member, HIGH_LIMIT)
}

/** Undefined where it would show only in a limit, and no limit works. */
export function caseExperiment(asked: Asked, member: string | undefined): Experiment | undefined {
  const { folded, foldsIntoStream } = DIALECTS[asked.protocol]
  if (foldsIntoStream) return bounded(asked, 'case', folded, member, STREAM_LIMIT)
  return member === undefined ? undefined : { ...make(asked, 'case', folded), limit: undefined }
}

export function abortExperiment(asked: Asked, member: string | undefined): Experiment {
  const { stream, streamed } = DIALECTS[asked.protocol]
  const experiment = bounded(asked, 'abort', stream, member, STREAM_LIMIT)
  const target = streamed.target(asked.upstreamModel)
  return { ...experiment, target, sent: `a stream, ${experiment.sent}`, isStream: true, leaves: true }
}

/** With a limit that works, or, where none does, with one only if the protocol has to have it. */
function bounded(asked: Asked, name: string, members: Members, member: string | undefined, limit: number): Experiment {
  if (member !== undefined) return { ...make(asked, name, { ...members, [member]: limit }), limit }
  const required = DIALECTS[asked.protocol].needsLimit ? { max_tokens: limit } : {}
  return { ...make(asked, name, { ...members, ...required }), limit: undefined }
}

function make({ protocol, upstreamModel }: Asked, name: string, members: Members): Omit<Experiment, 'limit'> {
  const { whole, bodyFor } = DIALECTS[protocol]
  const body = JSON.stringify(bodyFor(upstreamModel, members))
  return {
    name,
    sent: sentText(members),
    target: whole.target(upstreamModel),
    body,
    isStream: false,
    leaves: false,
  }
}

function sentText(members: Members): string {
  const shown = Object.entries(members).filter(([name]) => name !== 'stream' && name !== 'stream_options')
  return shown.length === 0 ? 'no limit' : shown.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(', ')
}
