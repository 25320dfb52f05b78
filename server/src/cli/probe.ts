import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { nanos, plus, type UnitPrice, usd } from '../kernel/money.ts'
import { sealOf } from '../kernel/seal.ts'
import { idOf } from '../operate/fields.ts'
import { listModels, type ModelListed, saveRoute } from '../pricing/configure-models.ts'
import { priceIn } from '../pricing/unit-prices.ts'
import type { Pools } from '../storage/pools.ts'
import { type Binding, readBindings } from '../upstreams/bindings.ts'
import { isProbed, type ProbedProtocol } from '../upstreams/probe/dialects.ts'
import { type Findings, probeRoute } from '../upstreams/probe/probe.ts'
import { recordingOf } from '../upstreams/probe/recording.ts'
import { createPurse, type ProbeRates, type Purse, usdText } from '../upstreams/probe/spending.ts'
import { createTransport, type Transport } from '../upstreams/transport.ts'
import { ids, operator, print, quietLog, running, withPools, writing } from './command.ts'
import { commandFor, findingLines, type Probed } from './probe-report.ts'

/** `farebox upstreams probe`: measures a vendor, shows what was found, and writes it to the model's routes on demand. */
export function addProbeCommand(upstreams: Command): void {
  writing(upstreams, 'probe <slot>')
    .description("measure how a slot's upstream differs from its protocol, with a few calls that cost money")
    .requiredOption('--model <model>', 'model whose routes to this slot are measured')
    .option('--protocol <name>', 'only routes of this protocol: openai, anthropic, gemini (default: all)')
    .option('--test', 'call the test upstream (default: the live one)')
    .option('--upstream <id>', 'call this upstream (default: the one that is tried first)')
    .option('--budget-usd <usd>', 'maximum spend in USD, by the prices of the model and the worst case', '0.05')
    .option('--write', 'write the results to the profile of the route (default: only show them)')
    .option(
      '--record <folder>',
      'save requests and answers for the sandbox, without credentials and ids (default: not saved)',
    )
    .action((slot: string, options: ProbeOptions) => running((config) => probe(config, slot, options)))
}

type ProbeOptions = {
  readonly model: string
  readonly protocol?: string
  readonly test?: true
  readonly upstream?: string
  readonly budgetUsd: string
  readonly write?: true
  readonly record?: string
}

type Route = ModelListed['routes'][number] & { readonly protocol: ProbedProtocol }

async function probe(config: Config, slot: string, options: ProbeOptions): Promise<void> {
  const budget = usd(options.budgetUsd)
  await withPools(config, async ({ rest: pool }) => {
    const [model] = await listModels({ pool }, options.model)
    if (model === undefined) throw new Error(`there is no model ${JSON.stringify(options.model)}`)
    const routes = routesOf(model, slot, options.protocol)
    const rates = ratesOf(model)
    const binding = await bindingOf({ config, pool }, slot, options)
    const purse = createPurse(budget)
    const transport = createTransport({ clock: systemClock })
    try {
      const parts = { transport, binding, purse, pool, options }
      for (const route of routes) await probeOne(parts, { model, route, rates })
    } finally {
      await transport.close()
      printSpending(purse)
    }
  })
}

function routesOf({ id, routes }: ModelListed, slot: string, protocol: string | undefined): readonly Route[] {
  const found: Route[] = []
  for (const route of routes) {
    const { protocol: spoken } = route
    if (route.slot !== slot || (protocol !== undefined && spoken !== protocol) || !isProbed(spoken)) continue
    found.push({ ...route, protocol: spoken })
  }
  if (found.length > 0) return found
  const of =
    protocol === undefined ? 'a protocol that can be probed (openai, anthropic, gemini)' : `protocol ${protocol}`
  throw new Error(`the model ${id} has no route to ${slot} in ${of}: see farebox models list`)
}

/** The dearer of what we charge and what we are charged, so that the budget holds whichever was kept up to date. */
function ratesOf({ id, price }: ModelListed): ProbeRates {
  if (price === null || price.images !== null || price.videos !== null)
    throw new Error(
      `the model ${id} has no price per token, so the spending cannot be limited: see farebox models price`,
    )
  const { input, output, cacheWrite, providerInput, providerOutput } = price
  return { input: dearestOf(input, cacheWrite, providerInput), output: dearestOf(output, providerOutput) }
}

function dearestOf(first: string, ...others: readonly (string | null)[]): UnitPrice {
  let dearest = priceIn(first)
  for (const text of others) {
    if (text === null) continue
    const price = priceIn(text)
    if (price.numerator * dearest.denominator > dearest.numerator * price.denominator) dearest = price
  }
  return dearest
}

type Opened = { readonly config: Config; readonly pool: Pools['rest'] }

async function bindingOf({ config, pool }: Opened, slot: string, options: ProbeOptions): Promise<Binding> {
  const mode = options.test === true ? 'test' : 'live'
  const wanted = options.upstream === undefined ? undefined : idOf(options.upstream)
  const all = await readBindings({ pool, seal: sealOf(config.secrets), log: quietLog(config) }, slot, mode)
  const found = all.find(({ id, enabled }) => (wanted === undefined ? enabled : id === wanted))
  if (found === undefined)
    throw new Error(
      wanted === undefined
        ? `${slot} has no upstream in ${mode} mode: see farebox upstreams add`
        : `${slot} has no upstream ${wanted} in ${mode} mode: see farebox upstreams list`,
    )
  const others = all.filter(({ id, enabled }) => enabled && id !== found.id).length
  if (others > 0) print(`Only upstream ${found.id} is measured; ${slot} has ${others} more, which share the profile.`)
  return found
}

type Parts = {
  readonly transport: Transport
  readonly binding: Binding
  readonly purse: Purse
  readonly pool: Pools['rest']
  readonly options: ProbeOptions
}

type Subject = { readonly model: ModelListed; readonly route: Route; readonly rates: ProbeRates }

async function probeOne(parts: Parts, { model, route, rates }: Subject): Promise<void> {
  const { transport, binding, purse, pool, options } = parts
  const { protocol, upstreamModel } = route
  const findings = await probeRoute(
    { transport, clock: systemClock, binding, purse },
    { protocol, upstreamModel, outputMost: model.outputMost, rates },
  )
  if (findings.trials.length === 0) throw nothingAsked(findings, purse, options)
  const measured: Probed = { model: model.id, route, binding, findings }
  for (const line of findingLines(measured)) print(line)
  if (options.record !== undefined) record(options.record, measured)
  if (findings.stopped !== undefined)
    throw new Error(`the probe of upstream ${binding.id} stopped, and nothing was written: ${findings.stopped}`)
  if (options.write === true) await write(pool, measured)
  else if (Object.keys(findings.profile).length > 0)
    print(`To write the profile, add --write, or run: ${commandFor(measured)}`)
}

function nothingAsked({ stopped, unaffordable }: Findings, purse: Purse, { budgetUsd }: ProbeOptions): Error {
  if (stopped !== undefined) return new Error(`the first request of the probe failed: ${stopped}`)
  const [first] = unaffordable
  const needed = plus(purse.spent().most, nanos(first?.most ?? 0n))
  return new Error(
    `a budget of ${budgetUsd} USD is too small: the first request can cost ${usdText(needed)} USD. ` +
      'Raise it with --budget-usd',
  )
}

/** As `models route` does; what was not measured stays as it is. */
async function write(pool: Pools['rest'], { model, route, findings: { profile } }: Probed): Promise<void> {
  if (Object.keys(profile).length === 0) return print('No result is certain enough to be written.')
  const { slot, protocol, upstreamModel } = route
  const id = await saveRoute({ pool, ids, by: operator() }, { model, slot, protocol, upstreamModel, profile })
  print(`Route ${id} has this profile now.`)
}

function record(folder: string, { route: { protocol, upstreamModel }, binding, findings }: Probed): void {
  mkdirSync(folder, { recursive: true })
  for (const trial of findings.trials) {
    const name = `${protocol}-${upstreamModel}-${trial.experiment.name}`.replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    const recording = recordingOf(protocol, trial, binding.credential)
    writeFileSync(path.join(folder, `${name}.json`), `${JSON.stringify(recording, null, 2)}\n`)
  }
  print(`${findings.trials.length} recordings written to ${folder}: see --replay of the sandbox.`)
}

function printSpending(purse: Purse): void {
  const { known, most } = purse.spent()
  print(`Spent ${usdText(known)} USD as reported or counted, at most ${usdText(most)} USD.`)
}
