import { z } from 'zod'
import { catalogue } from '../catalogue/catalogue.ts'
import { isSoldByUnit } from '../catalogue/operation.ts'
import { nearest } from '../kernel/nearest.ts'
import { Secret } from '../kernel/secret.ts'
import { listModels, listRouteSlots } from '../pricing/configure-models.ts'
import { PROTOCOL_NAMES } from '../protocols/protocol.ts'
import { targetOf } from '../protocols/protocols.ts'
import { doubledPath, parseBaseUrl } from '../upstreams/address.ts'
import { listUpstreams, removeUpstream, saveUpstream, turnUpstream } from '../upstreams/configure.ts'
import { action, field, flag, listField, type OperatorParts } from './action.ts'
import { idField, NO_INPUT } from './fields.ts'

type Pool = OperatorParts['pool']

const slots = () => [...new Set(catalogue.operations.filter(isSoldByUnit).map(({ upstream }) => upstream.slot))]

/** Somebody may add an upstream before the model that needs it, and somebody may mistype a slot. */
async function hintFor(pool: Pool, slot: string): Promise<string | null> {
  const routed = await listRouteSlots({ pool })
  if (slots().includes(slot) || routed.includes(slot)) return null
  const near = nearest(slot, [...slots(), ...routed])
  const next = near === undefined ? 'Next:' : `Did you mean ${near}? If not:`
  return `No operation and no route uses the slot ${slot} yet. ${next} farebox models route <model> --slot ${slot} --protocol <name>`
}

/** What is asked below the base URL of a slot: by its operations, by the routes that name it, or by whatever a route could speak. */
async function targetsOf(pool: Pool, slot: string): Promise<readonly string[]> {
  const ofOperations = catalogue.operations.filter(isSoldByUnit).flatMap((operation) => {
    const { upstream } = operation
    return upstream.slot === slot ? [upstream.path] : []
  })
  if (ofOperations.length > 0) return ofOperations
  const routes = (await listModels({ pool })).flatMap((model) => model.routes)
  const spoken = new Set(routes.filter((route) => route.slot === slot).map(({ protocol }) => protocol))
  return (spoken.size > 0 ? [...spoken] : PROTOCOL_NAMES).map(targetOf)
}

async function requireSinglePath(pool: Pool, slot: string, baseUrl: string): Promise<void> {
  const { origin, prefix } = parseBaseUrl(baseUrl)
  const doubled = doubledPath(prefix, await targetsOf(pool, slot))
  if (doubled === undefined) return
  const shorter = origin + prefix.slice(0, -doubled.length)
  throw new Error(
    `${doubled} would be twice in the requests to it: give the URL without it, ${shorter}, ` +
      'or add --keep-path if the provider really has it twice',
  )
}

function rateOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error('must be a whole number above 0')
  return Number(text)
}

const add = action({
  name: 'upstreams add',
  summary: `add an upstream to a slot (${slots().join(', ')}, or one that routes of models name); effective within a second`,
  effect: 'writes',
  positional: ['slot', 'url'],
  input: z.object({
    slot: field('slot', 'slot to add it to', String),
    url: field('url', 'base URL of the provider', String),
    test: flag('use it for test keys, as a sandbox (default: for live keys)'),
    managed: flag('answer 503 when it cannot be reached (default: 502)'),
    credential: field(
      'path',
      'file with our credential at the provider; not an argument, which others can read (default: none)',
      (text) => new Secret(text.trim()),
      { from: 'file' },
    ).optional(),
    segment: listField(
      'name=word...',
      "the provider's own word for a name in our paths, such as social_c=clips (default: none)",
      (texts) => Object.fromEntries(texts.map(wordOf)),
    ).optional(),
    requestsPerMinute: field(
      'number',
      'rate limit of our account there, counted over all processes (default: none)',
      rateOf,
    ).optional(),
    pollsPerSecond: field(
      'number',
      'rate limit of task polls, counted over all processes (default: none)',
      rateOf,
    ).optional(),
    clientId: field(
      'id',
      'our OAuth client id at a platform with linked accounts; --credential-file has the secret (default: none)',
      String,
    ).optional(),
    authorizeUrl: field('url', 'OAuth authorization URL of that platform (default: none)', String).optional(),
    keepPath: flag('accept a URL that ends like our paths begin, such as …/v1 (default: refuse it)'),
  }),
  async run({ pool, ids, by, seal }, { slot, url, test, managed, credential = null, ...input }) {
    if (!input.keepPath) await requireSinglePath(pool, slot, url)
    const hint = await hintFor(pool, slot)
    const id = await saveUpstream(
      { pool, ids, seal: credential === null ? null : await seal(), by },
      {
        slot,
        mode: test ? 'test' : 'live',
        baseUrl: url,
        kind: managed ? 'managed' : 'native',
        credential,
        segments: input.segment ?? {},
        requestsPerMinute: input.requestsPerMinute ?? null,
        pollsPerSecond: input.pollsPerSecond ?? null,
        client: clientOf(input),
      },
    )
    return { id, slot, hint }
  },
  lines: ({ id, slot, hint }) => [`Upstream ${id} added to the slot ${slot}.`, ...(hint === null ? [] : [hint])],
})

type Client = { readonly clientId?: string | undefined; readonly authorizeUrl?: string | undefined }

function clientOf({ clientId: id, authorizeUrl }: Client) {
  if (id === undefined && authorizeUrl === undefined) return null
  if (id === undefined || authorizeUrl === undefined)
    throw new Error('--client-id and --authorize-url belong together: give both')
  return { id, authorizeUrl }
}

function wordOf(text: string): [name: string, word: string] {
  const at = text.indexOf('=')
  if (at < 1) throw new Error(`${JSON.stringify(text)} is not a segment: use name=word`)
  return [text.slice(0, at), text.slice(at + 1)]
}

const list = action({
  name: 'upstreams list',
  summary: 'list all upstreams',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  run: ({ pool }) => listUpstreams({ pool }),
  lines: (all) =>
    all.length === 0
      ? ['There are no upstreams: see farebox upstreams add.']
      : all.map(({ id, slot, mode, baseUrl, kind, hasCredential, requestsPerMinute, pollsPerSecond, enabled }) =>
          [
            ...[id, slot, mode, baseUrl, kind],
            ...(hasCredential ? [] : ['no credential']),
            ...(requestsPerMinute === null ? [] : [`${requestsPerMinute} requests per minute`]),
            ...(pollsPerSecond === null ? [] : [`${pollsPerSecond} polls per second`]),
            ...(enabled ? [] : ['off']),
          ].join('  '),
        ),
})

const input = z.object({ id: idField('id', 'id of the upstream: see farebox upstreams list') })

const off = action({
  name: 'upstreams off',
  summary: 'turn an upstream off: no new calls; its tasks are polled until they end',
  effect: 'writes',
  positional: ['id'],
  input,
  run: ({ pool, by }, { id }) => turnUpstream({ pool, by }, id, false).then(() => ({ id })),
  lines: ({ id }) => [`Upstream ${id} is off: it gets no new calls.`],
})

const on = action({
  name: 'upstreams on',
  summary: 'turn an upstream on again',
  effect: 'writes',
  positional: ['id'],
  input,
  run: ({ pool, by }, { id }) => turnUpstream({ pool, by }, id, true).then(() => ({ id })),
  lines: ({ id }) => [`Upstream ${id} is on: it gets calls.`],
})

const remove = action({
  name: 'upstreams remove',
  summary: 'remove an upstream',
  effect: 'writes',
  positional: ['id'],
  input,
  run: ({ pool, by }, { id }) => removeUpstream({ pool, by }, id).then(() => ({ id })),
  lines: ({ id }) => [`Upstream ${id} is removed.`],
})

export const upstreams = [add, list, off, on, remove]
