import { createReadStream } from 'node:fs'
import { styleText } from 'node:util'
import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { listPriceVersions, type PriceVersion, VERSIONS_MOST } from '../pricing/price-history.ts'
import { writePriceList } from '../pricing/price-list/file.ts'
import { MODELS_MOST, readPriceList } from '../pricing/price-list/format.ts'
import { applyImport, type ImportPlan, planImport } from '../pricing/price-list/import.ts'
import { convertCommunityList } from '../pricing/price-list/litellm.ts'
import { PriceListError } from '../pricing/price-list/problems.ts'
import { FILE_BYTES_MOST } from '../pricing/price-list/tree.ts'
import { operator, print, reading, running, runningAlone, withPools, writing } from './command.ts'
import { changeLines, planLines } from './price-list-lines.ts'

/** For an option that may be given more than once. */
function oneMore(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** `farebox models import`, `convert` and `history`: models and prices from a file, and what they were before. */
export function addPriceListCommands(models: Command): void {
  writing(models, 'import <file>')
    .description('compare a price list with the current models, and apply it with --apply (docs/price-lists.md)')
    .option('--apply', 'write the differences, in one transaction (default: only show them)')
    .option(
      '--allow <model>',
      'apply this model although a number changes more than 10 times, or to or from zero; repeatable (default: none)',
      oneMore,
    )
    .option('--allow-all', 'apply all such models (default: hold them back)')
    .option('--json', 'print the differences as JSON (default: text)')
    .action((file: string, options: ImportOptions) => running((config) => importList(config, file, options)))
  reading(models, 'convert <file>')
    .description("print the public community list (litellm's model_prices_and_context_window.json) as a price list")
    .option('--only <pattern>', 'only models whose name matches, such as gpt-5*; repeatable (default: all)', oneMore)
    .option(
      '--provider <provider=prefix>',
      'prefix of model names of a provider, such as gemini=google/; repeatable (default: none)',
      oneMore,
    )
    .option('--with-cost', 'write the prices as the cost too (default: only as the price)')
    .action((file: string, options: ConvertOptions) => runningAlone(() => convert(file, options)))
  reading(models, 'history <model>')
    .description("list the versions of a model's price: since when, set by whom, and what changed")
    .option('--json', 'print one JSON object per line (default: text)')
    .action((model: string, options: { json?: true }) =>
      running((config) => history(config, model, options.json === true)),
    )
}

type ImportOptions = {
  readonly apply?: true
  readonly allow?: readonly string[]
  readonly allowAll?: true
  readonly json?: true
}

/** Told apart from a failure: all the rest was done. */
const EXIT_HELD_BACK = 2

async function importList(config: Config, file: string, options: ImportOptions): Promise<void> {
  const bytes = await bytesOf(file)
  const list = await naming(file, () => readPriceList(bytes))
  const allowed = { all: options.allowAll === true, models: new Set(options.allow ?? []) }
  const isApplied = options.apply === true
  await withPools(config, async ({ rest: pool }) => {
    const plan = await naming(file, () =>
      isApplied ? applyImport({ pool, by: operator() }, list, allowed) : planImport(pool, list, allowed),
    )
    if (options.json === true) print(JSON.stringify({ applied: isApplied, ...plan }, null, 2))
    else for (const line of planLines(plan, { file, isApplied })) print(line)
    if (isAnyHeld(plan)) process.exitCode = EXIT_HELD_BACK
  })
}

function isAnyHeld({ models }: ImportPlan): boolean {
  return models.some(({ held }) => held.length > 0)
}

type ConvertOptions = {
  readonly only?: readonly string[]
  readonly provider?: readonly string[]
  readonly withCost?: true
}

async function convert(file: string, options: ConvertOptions): Promise<void> {
  const patterns = (options.only ?? ['*']).map(patternOf)
  const choice = {
    isWanted: (name: string) => patterns.some((pattern) => pattern.test(name)),
    prefixes: new Map((options.provider ?? []).map(prefixOf)),
    withCost: options.withCost === true,
  }
  const bytes = await bytesOf(file)
  const { models, leftOut, notes } = await naming(file, () => convertCommunityList(bytes, choice))
  for (const { name, text } of notes) say(`${name}: ${text}`)
  for (const { name, text } of leftOut) say(`${name} is skipped: ${text}`)
  const count = Object.keys(models).length
  if (count === 0) throw new Error(`${file} has no matching model that can be converted`)
  if (count > MODELS_MOST)
    throw new Error(`${count} models match, and a price list can have at most ${MODELS_MOST}: select some with --only`)
  process.stdout.write(writePriceList(models))
  say(`${count} converted, ${leftOut.length} skipped.`)
}

/** Beside what is printed, which may go to a file. */
function say(line: string): void {
  process.stderr.write(`${line.replace(/\p{Cc}/gu, '?')}\n`)
}

const PATTERN_MOST = 200

function patternOf(text: string): RegExp {
  if (text.length > PATTERN_MOST) throw new Error(`--only takes a pattern of at most ${PATTERN_MOST} characters`)
  return new RegExp(`^${text.split(/\*+/).map(literal).join('.*')}$`)
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

function prefixOf(text: string): readonly [string, string] {
  const [, provider = '', prefix = ''] = /^([^=]+)=(.*)$/.exec(text) ?? []
  if (provider === '') throw new Error(`${JSON.stringify(text)} must be provider=prefix, such as gemini=google/`)
  return [provider, prefix]
}

async function history(config: Config, model: string, isJson: boolean): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const versions = await listPriceVersions(pool, model)
    if (isJson) for (const version of versions) print(JSON.stringify(version))
    else for (const line of versions.flatMap(versionLines)) print(line)
    if (isJson) return
    if (versions.length === 0) print(`${model} has never had a price: see farebox models price ${model}.`)
    if (versions.length === VERSIONS_MOST) print('Older versions are not shown.')
  })
}

function versionLines({ version, since, by, changes }: PriceVersion, at: number): readonly string[] {
  const title = styleText('bold', `version ${version}`)
  const whose = by === null ? 'set by unknown' : `set by ${by.replace(/\p{Cc}/gu, '?')}`
  const lines = changes.length === 0 ? ['    no price changed'] : changeLines(changes, { isNew: version === 1 })
  return [...(at === 0 ? [] : ['']), `${title}  since ${since.toISOString()}  ${whose}`, ...lines]
}

/** Says of which file it is what is wrong with it. */
async function naming<T>(file: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof PriceListError ? error.of(file) : error
  }
}

/** No more than shows that a file is too long. */
async function bytesOf(file: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of createReadStream(file, { end: FILE_BYTES_MOST })) pieces.push(piece)
  return Buffer.concat(pieces)
}
