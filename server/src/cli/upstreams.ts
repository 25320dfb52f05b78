import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { catalogue } from '../catalogue/catalogue.ts'
import { isSoldByUnit } from '../catalogue/operation.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { sealOf } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import { listRouteSlots } from '../pricing/configure-models.ts'
import type { Pools } from '../storage/pools.ts'
import { listUpstreams, removeUpstream, saveUpstream, turnUpstream } from '../upstreams/configure.ts'
import { idOf, operator, print, reading, running, withPools, writing } from './command.ts'
import { addProbeCommand } from './probe.ts'

const ids = createIds({ clock: systemClock })

export function addUpstreamCommands(program: Command): void {
  const upstreams = program.command('upstreams').description('look after whom we ask')
  writing(upstreams, 'add <slot> <url>')
    .description(
      `make an upstream of a slot (${slots().join(', ')}, or one that a model's route names); every process uses it within a second`,
    )
    .option('--test', 'for test keys: a sandbox')
    .option('--managed', 'a failure to reach it is answered 503 instead of 502')
    .option('--credential-file <path>', 'a file with our credential there; never an argument, which others can read')
    .option('--segment <name=word...>', "the upstream's own word for a name in our paths, such as social_c=clips")
    .option('--requests-per-minute <number>', 'what our account there may send, counted over all processes')
    .option('--polls-per-second <number>', 'how often it may be asked for tasks, counted over all processes')
    .option('--client-id <id>', 'how a platform that asks its users knows us; --credential-file has our secret there')
    .option('--authorize-url <url>', 'where it asks them')
    .action((slot: string, url: string, options: AddOptions) => running((config) => add(config, slot, url, options)))
  reading(upstreams, 'list')
    .description('list all upstreams')
    .action(() => running(list))
  writing(upstreams, 'off <id>')
    .description('give an upstream no more calls; tasks that it has are asked for until they have ended')
    .action((id: string) => running((config) => turn(config, id, false)))
  writing(upstreams, 'on <id>')
    .description('give an upstream calls again')
    .action((id: string) => running((config) => turn(config, id, true)))
  writing(upstreams, 'remove <id>')
    .description('ask an upstream no more')
    .action((id: string) => running((config) => remove(config, id)))
  addProbeCommand(upstreams)
}

function slots(): readonly string[] {
  return [...new Set(catalogue.operations.filter(isSoldByUnit).map(({ upstream }) => upstream.slot))]
}

/** An upstream that nobody would ever ask is a slip of the pen. */
async function requireAsked(pool: Pools['rest'], slot: string): Promise<void> {
  if (slots().includes(slot) || (await listRouteSlots({ pool })).includes(slot)) return
  throw new Error(
    `no operation asks a slot ${JSON.stringify(slot)}: ${slots().join(', ')}; nor does a model's route: see farebox models route`,
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
}

async function add(config: Config, slot: string, baseUrl: string, options: AddOptions): Promise<void> {
  const { credentialFile, segment = [] } = options
  const requestsPerMinute = quotaOf('--requests-per-minute', options.requestsPerMinute)
  const pollsPerSecond = quotaOf('--polls-per-second', options.pollsPerSecond)
  const credential = credentialFile === undefined ? null : new Secret(readFileSync(credentialFile, 'utf8').trim())
  await withPools(config, async ({ rest: pool }) => {
    await requireAsked(pool, slot)
    const id = await saveUpstream(
      { pool, ids, seal: sealOf(config.secrets), by: operator() },
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
    print(`Upstream ${id} is asked for ${slot}.`)
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
        ...(hasCredential ? [] : ['without credential']),
        ...(requestsPerMinute === null ? [] : [`${requestsPerMinute} requests a minute`]),
        ...(pollsPerSecond === null ? [] : [`${pollsPerSecond} polls a second`]),
        ...(enabled ? [] : ['off']),
      ]
      print([id, slot, mode, baseUrl, kind, ...rest].join('  '))
    }
  })
}

async function turn(config: Config, id: string, enabled: boolean): Promise<void> {
  await withPools(config, async ({ rest }) => {
    await turnUpstream({ pool: rest, by: operator() }, idOf(id), enabled)
    print(`Upstream ${id} is ${enabled ? 'given calls' : 'given no more calls'}.`)
  })
}

async function remove(config: Config, id: string): Promise<void> {
  await withPools(config, async ({ rest }) => {
    await removeUpstream({ pool: rest, by: operator() }, idOf(id))
    print(`Upstream ${id} is asked no more.`)
  })
}

function wordOf(text: string): [name: string, word: string] {
  const at = text.indexOf('=')
  if (at < 1) throw new Error(`${JSON.stringify(text)} is no segment: write name=word`)
  return [text.slice(0, at), text.slice(at + 1)]
}
