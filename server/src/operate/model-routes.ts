import { z } from 'zod'
import { listModels, type RouteSettings, saveRoute } from '../pricing/configure-models.ts'
import { PROTOCOL_NAMES, type ProtocolName } from '../protocols/protocol.ts'
import { listUpstreams } from '../upstreams/configure.ts'
import { action, field, flag } from './action.ts'
import { choiceOf } from './fields.ts'

/** Priorities may be less than 0. */
export function integerOf(text: string): number {
  if (!/^-?\d{1,9}$/.test(text)) throw new Error('must be a whole number')
  return Number(text)
}

/** Undefined where neither is said: then it stays as it is. */
function enabledOf({ on, off }: { readonly on: boolean; readonly off: boolean }): boolean | undefined {
  if (on && off) throw new Error('a route is on or off: give either --on or --off')
  return on ? true : off ? false : undefined
}

const choice = <Value>(words: string, choices: Readonly<Record<string, Value>>, description: string) =>
  field(words, description, (text) => choiceOf(text, choices)).optional()

const input = z.object({
  model: field('model', 'id of the model', String),
  slot: field('slot', 'slot whose upstreams are called: see farebox upstreams add', String),
  protocol: field('name', `protocol of the upstreams: ${PROTOCOL_NAMES.join(', ')}`, protocolOf),
  upstreamModel: field('name', 'name of the model at the provider (default: the model id)', String).optional(),
  priority: field('number', 'routes with the lowest number are tried first (new route: 0)', integerOf).optional(),
  weight: field('number', 'share of calls among routes of the same priority (new route: 1)', integerOf).optional(),
  outputLimit: field(
    'member',
    'parameter that carries the output limit, or none to send it as the caller wrote it (new route: none)',
    (text) => (text === 'none' ? null : text),
  ).optional(),
  unknown: choice(
    'refuse|pass',
    { refuse: 'refuse', pass: 'pass' } as const,
    'what to do with unknown parameters (new route: refuse)',
  ),
  reasoning: choice(
    'within|apart',
    { within: 'within', apart: 'apart' } as const,
    'whether reasoning tokens count within the output or apart from it (new route: within)',
  ),
  onAbort: choice(
    'stops|runs-on',
    { stops: 'stops', 'runs-on': 'runs_on' } as const,
    'whether the provider stops billing when we disconnect; not for models with hidden reasoning (new route: runs-on)',
  ),
  output: choice(
    'seen|hidden',
    { seen: 'seen', hidden: 'hidden' } as const,
    'whether all billed output is streamed as it is generated (new route: hidden)',
  ),
  tokenBytes: field('bytes', 'minimum bytes of text per token, 1 to 4 (new route: 1)', integerOf).optional(),
  topSpeed: field('tokens', 'maximum tokens per second of the provider, or none (new route: none)', (text) =>
    text === 'none' ? null : integerOf(text),
  ).optional(),
  off: flag('turn the route off and keep it'),
  on: flag('turn the route on (new route: on)'),
})

function protocolOf(text: string): ProtocolName {
  const found = PROTOCOL_NAMES.find((name) => name === text)
  if (found === undefined)
    throw new Error(`there is no protocol ${JSON.stringify(text)}: use one of ${PROTOCOL_NAMES.join(', ')}`)
  return found
}

export const route = action({
  name: 'models route',
  summary: 'add a route from a model to an upstream slot, or change the route with the same slot, protocol and name',
  effect: 'writes',
  positional: ['model'],
  input,
  async run({ pool, ids, by }, given) {
    const { model, slot, protocol, upstreamModel = model, priority, weight } = given
    const settings = { model, slot, protocol, upstreamModel, priority, weight, profile: profileOf(given) }
    const enabled = enabledOf(given)
    const id = await saveRoute({ pool, ids, by }, { ...settings, enabled })
    const isOn = (await listModels({ pool })).some(({ routes }) => routes.some((one) => one.id === id && one.enabled))
    const hasUpstream = (await listUpstreams({ pool }, slot)).length > 0
    return { id, model, slot, protocol, upstreamModel, enabled: isOn, hasUpstream }
  },
  lines: ({ id, model, slot, protocol, upstreamModel, enabled, hasUpstream }) => [
    enabled
      ? `Route ${id}: ${model} is sent to slot ${slot} as ${upstreamModel}, protocol ${protocol}.`
      : `Route ${id} is off.`,
    ...(hasUpstream ? [] : [`Slot ${slot} has no upstream yet: see farebox upstreams add ${slot}.`]),
  ],
})

/** What is named of a route's profile. */
function profileOf(given: z.output<typeof input>): RouteSettings['profile'] {
  const { outputLimit, unknown, reasoning, onAbort: abort, output, tokenBytes, topSpeed } = given
  return { outputLimit, unknown, reasoning, abort, output, tokenBytes, topSpeed }
}
