import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { catalogue } from '../catalogue/catalogue.ts'
import { isSoldByUnit } from '../catalogue/operation.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { nearest } from '../kernel/nearest.ts'
import { Secret } from '../kernel/secret.ts'
import { listModels, listRouteSlots } from '../pricing/configure-models.ts'
import { PROTOCOL_NAMES } from '../protocols/protocol.ts'
import { targetOf } from '../protocols/protocols.ts'
import type { Pools } from '../storage/pools.ts'
import { doubledPath, parseBaseUrl } from '../upstreams/address.ts'
import { listUpstreams, removeUpstream, saveUpstream, turnUpstream } from '../upstreams/configure.ts'
import { idOf, operator, print, reading, running, withPools, writing } from './command.ts'
import { addProbeCommand } from './probe.ts'
import { sealFor } from './seal-for.ts'

const ids = createIds({ clock: systemClock })

export function addUpstreamCommands(program: Command): void {
  const upstreams = program.command('upstreams').description('manage upstream providers')
  writing(upstreams, 'add <slot> <url>')
    .description(
      `add an upstream to a slot (${slots().join(', ')}, or one that routes of models name); effective within a second`,
    )
    .option('--test', 'use it for test keys, as a sandbox (default: for live keys)')
    .option('--managed', 'answer 503 when it cannot be reached (default: 502)')
    .option(
      '--credential-file <path>',
      'file with our credential at the provider; not an argument, which others can read (default: none)',
    )
    .option(
      '--segment <name=word...>',
      "the provider's own word for a name in our paths, such as social_c=clips (default: none)",
    )
    .option(
      '--requests-per-minute <number>',
      'rate limit of our account there, counted over all processes (default: none)',
    )
    .option('--polls-per-second <number>', 'rate limit of task polls, counted over all processes (default: none)')
    .option(
      '--client-id <id>',
      'our OAuth client id at a platform with linked accounts; --credential-file has the secret (default: none)',
    )
    .option('--authorize-url <url>', 'OAuth authorization URL of that platform (default: none)')
    .option('--keep-path', 'accept a URL that ends like our paths begin, such as …/v1 (default: refuse it)')
    .action((slot: string, url: string, options: AddOptions) => running((config) => add(config, slot, url, options)))
  reading(upstreams, 'list')
    .description('list all upstreams')
    .action(() => running(list))
  writing(upstreams, 'off <id>')
    .description('turn an upstream off: no new calls; its tasks are polled until they end')
    .action((id: string) => running((config) => turn(config, id, false)))
  writing(upstreams, 'on <id>')
    .description('turn an upstream on again')
    .action((id: string) => running((config) => turn(config, id, true)))
  writing(upstreams, 'remove <id>')
    .description('remove an upstream')
    .action((id: string) => running((config) => remove(config, id)))
  addProbeCommand(upstreams)
}

function slots(): readonly string[] {
  return [...new Set(catalogue.operations.filter(isSoldByUnit).map(({ upstream }) => upstream.slot))]
}

/** Somebody may add an upstream before the model that needs it, and somebody may mistype a slot. */
async function hintFor(pool: Pools['rest'], slot: string): Promise<string | undefined> {
  const routed = await listRouteSlots({ pool })
  if (slots().includes(slot) || routed.includes(slot)) return undefined
  const near = nearest(slot, [...slots(), ...routed])
  const next = near === undefined ? 'Next:' : `Did you mean ${near}? If not:`
  return `No operation and no route uses the slot ${slot} yet. ${next} farebox models route <model> --slot ${slot} --protocol <name>`
}

/** What is asked below the base URL of a slot: by its operations, by the routes that name it, or by whatever a route could speak. */
async function targetsOf(pool: Pools['rest'], slot: string): Promise<readonly string[]> {
  const ofOperations = catalogue.operations.filter(isSoldByUnit).flatMap((operation) => {
    const { upstream } = operation
    return upstream.slot === slot ? [upstream.path] : []
  })
  if (ofOperations.length > 0) return ofOperations
  const routes = (await listModels({ pool })).flatMap((model) => model.routes)
  const spoken = new Set(routes.filter((route) => route.slot === slot).map(({ protocol }) => protocol))
  return (spoken.size > 0 ? [...spoken] : PROTOCOL_NAMES).map(targetOf)
}

async function requireSinglePath(pool: Pools['rest'], slot: string, baseUrl: string): Promise<void> {
  const { origin, prefix } = parseBaseUrl(baseUrl)
  const doubled = doubledPath(prefix, await targetsOf(pool, slot))
  if (doubled === undefined) return
  const shorter = origin + prefix.slice(0, -doubled.length)
  throw new Error(
    `${doubled} would be twice in the requests to it: give the URL without it, ${shorter}, ` +
      'or add --keep-path if the provider really has it twice',
  )
}

function quotaOf(option: string, text: string | undefined): number | null {
  if (text === undefined) return null
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`${option} must be a whole number above 0`)
  return Number(text)
}

type AddOptions = {
  readonly test?: true
  readonly managed?: true
  readonly credentialFile?: string
  readonly segment?: readonly string[]
  readonly requestsPerMinute?: string
  readonly pollsPerSecond?: string
  readonly clientId?: string
  readonly authorizeUrl?: string
  readonly keepPath?: true
}

async function add(config: Config, slot: string, baseUrl: string, options: AddOptions): Promise<void> {
  const { credentialFile, segment = [] } = options
  const requestsPerMinute = quotaOf('--requests-per-minute', options.requestsPerMinute)
  const pollsPerSecond = quotaOf('--polls-per-second', options.pollsPerSecond)
  const credential = credentialFile === undefined ? null : new Secret(readFileSync(credentialFile, 'utf8').trim())
  await withPools(config, async ({ rest: pool }) => {
    if (options.keepPath !== true) await requireSinglePath(pool, slot, baseUrl)
    const hint = await hintFor(pool, slot)
    const seal = credential === null ? null : await sealFor(pool, config)
    const id = await saveUpstream(
      { pool, ids, seal, by: operator() },
      {
        slot,
        mode: options.test === true ? 'test' : 'live',
        baseUrl,
        kind: options.managed === true ? 'managed' : 'native',
        credential,
        segments: Object.fromEntries(segment.map(wordOf)),
        requestsPerMinute,
        pollsPerSecond,
        client: clientOf(options),
      },
    )
    print(`Upstream ${id} added to the slot ${slot}.`)
    if (hint !== undefined) print(hint)
  })
}

function clientOf({ clientId: id, authorizeUrl }: AddOptions) {
  if (id === undefined && authorizeUrl === undefined) return null
  if (id === undefined || authorizeUrl === undefined)
    throw new Error('--client-id and --authorize-url belong together: give both')
  return { id, authorizeUrl }
}

async function list(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const all = await listUpstreams({ pool: rest })
    if (all.length === 0) return print('There are no upstreams: see farebox upstreams add.')
    for (const { id, slot, mode, baseUrl, kind, hasCredential, requestsPerMinute, pollsPerSecond, enabled } of all) {
      const rest = [
        ...(hasCredential ? [] : ['no credential']),
        ...(requestsPerMinute === null ? [] : [`${requestsPerMinute} requests per minute`]),
        ...(pollsPerSecond === null ? [] : [`${pollsPerSecond} polls per second`]),
        ...(enabled ? [] : ['off']),
      ]
      print([id, slot, mode, baseUrl, kind, ...rest].join('  '))
    }
  })
}

async function turn(config: Config, id: string, enabled: boolean): Promise<void> {
  await withPools(config, async ({ rest }) => {
    await turnUpstream({ pool: rest, by: operator() }, idOf(id), enabled)
    print(`Upstream ${id} is ${enabled ? 'on: it gets calls' : 'off: it gets no new calls'}.`)
  })
}

async function remove(config: Config, id: string): Promise<void> {
  await withPools(config, async ({ rest }) => {
    await removeUpstream({ pool: rest, by: operator() }, idOf(id))
    print(`Upstream ${id} is removed.`)
  })
}

function wordOf(text: string): [name: string, word: string] {
  const at = text.indexOf('=')
  if (at < 1) throw new Error(`${JSON.stringify(text)} is not a segment: use name=word`)
  return [text.slice(0, at), text.slice(at + 1)]
}
