import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { catalogue } from '../catalogue/catalogue.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { sealOf } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import { listUpstreams, removeUpstream, saveUpstream } from '../upstreams/configure.ts'
import { idOf, print, running, withPools } from './command.ts'

const ids = createIds({ clock: systemClock })

export function addUpstreamCommands(program: Command): void {
  const upstreams = program.command('upstreams').description('look after whom we ask')
  upstreams
    .command('add <slot> <url>')
    .description(`make an upstream of a slot (${slots().join(', ')}); every process uses it within a second`)
    .option('--test', 'for test keys: a sandbox')
    .option('--managed', 'a failure to reach it is answered 503 instead of 502')
    .option('--credential-file <path>', 'a file with our credential there; never an argument, which others can read')
    .option('--segment <name=word...>', "the upstream's own word for a name in our paths, such as social_c=clips")
    .action((slot: string, url: string, options: AddOptions) => running((config) => add(config, slot, url, options)))
  upstreams
    .command('list')
    .description('list all upstreams')
    .action(() => running(list))
  upstreams
    .command('remove <id>')
    .description('ask an upstream no more')
    .action((id: string) => running((config) => remove(config, id)))
}

function slots(): readonly string[] {
  return [...new Set(catalogue.operations.map(({ upstream }) => upstream.slot))]
}

type AddOptions = {
  readonly test?: true
  readonly managed?: true
  readonly credentialFile?: string
  readonly segment?: readonly string[]
}

async function add(config: Config, slot: string, baseUrl: string, options: AddOptions): Promise<void> {
  if (!slots().includes(slot))
    throw new Error(`no operation asks a slot ${JSON.stringify(slot)}: ${slots().join(', ')}`)
  const { credentialFile, segment = [] } = options
  const credential = credentialFile === undefined ? null : new Secret(readFileSync(credentialFile, 'utf8').trim())
  await withPools(config, async ({ rest: pool }) => {
    const id = await saveUpstream(
      { pool, ids, seal: sealOf(config.secrets) },
      {
        slot,
        mode: options.test === true ? 'test' : 'live',
        baseUrl,
        kind: options.managed === true ? 'managed' : 'native',
        credential,
        segments: Object.fromEntries(segment.map(wordOf)),
      },
    )
    print(`Upstream ${id} is asked for ${slot}.`)
  })
}

async function list(config: Config): Promise<void> {
  await withPools(config, async ({ rest }) => {
    const all = await listUpstreams({ pool: rest })
    if (all.length === 0) return print('There are no upstreams: see farebox upstreams add.')
    for (const { id, slot, mode, baseUrl, kind, hasCredential, enabled } of all)
      print(
        `${id}  ${slot}  ${mode}  ${baseUrl}  ${kind}${hasCredential ? '' : '  without credential'}${enabled ? '' : '  off'}`,
      )
  })
}

async function remove(config: Config, id: string): Promise<void> {
  await withPools(config, async ({ rest }) => {
    await removeUpstream({ pool: rest }, idOf(id))
    print(`Upstream ${id} is asked no more.`)
  })
}

function wordOf(text: string): [name: string, word: string] {
  const at = text.indexOf('=')
  if (at < 1) throw new Error(`${JSON.stringify(text)} is no segment: write name=word`)
  return [text.slice(0, at), text.slice(at + 1)]
}
