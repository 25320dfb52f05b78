import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import {
  type KindPrices,
  listModels,
  type ModelListed,
  type NewModelPrice,
  type RouteSettings,
  removeModel,
  removeRoute,
  saveModel,
  saveRoute,
  setModelPrice,
} from '../pricing/configure-models.ts'
import { TOKENIZERS } from '../pricing/models.ts'
import { PROTOCOL_NAMES, type ProtocolName } from '../protocols/protocol.ts'
import { PLAIN_PROFILE, type RouteProfile } from '../protocols/route-profile.ts'
import { listUpstreams } from '../upstreams/configure.ts'
import type { Tokenizer } from '../upstreams/tokens/count-tokens.ts'
import { type ClassOptions, classPricesIn } from './class-prices.ts'
import { idOf, operator, print, reading, running, withPools, writing } from './command.ts'
import { withModelOptions, withPriceOptions, withRouteOptions } from './model-options.ts'
import { addOwnModelPriceCommand, marginLines, marginsByModel, marginsText } from './own-model-prices.ts'
import { addPriceListCommands } from './price-lists.ts'

const ids = createIds({ clock: systemClock })

export function addModelCommands(program: Command): void {
  const models = program.command('models').description('manage the models that are sold')
  reading(models, 'list')
    .description('list all models with their prices and routes')
    .action(() => running(list))
  withModelOptions(writing(models, 'set <model>'))
    .description('create a model, or change the named settings of one; effective within a second')
    .action((id: string, options: SetOptions) => running((config) => set(config, id, options)))
  withPriceOptions(writing(models, 'price <model>'))
    .description(
      'set the price of a model in USD per million tokens, or per image or second of video; running calls keep their price',
    )
    .action((id: string, options: PriceOptions) => running((config) => price(config, id, options)))
  withRouteOptions(writing(models, 'route <model>'))
    .description(
      'add a route from a model to an upstream slot, or change the route with the same slot, protocol and name',
    )
    .action((id: string, options: RouteOptions) => running((config) => route(config, id, options)))
  writing(models, 'remove <model>')
    .description('remove a model with its routes, or one route of it')
    .option('--route <id>', 'remove only this route (default: the model and all its routes)')
    .action((id: string, options: { route?: string }) => running((config) => remove(config, id, options.route)))
  addOwnModelPriceCommand(models)
  addPriceListCommands(models)
}

type SetOptions = Partial<
  Record<
    'contextWindow' | 'outputCap' | 'outputMost' | 'imageTokens' | 'audioTokens' | 'fileTokens' | 'tokenizer',
    string
  >
> & { readonly displayName?: string; readonly ownedBy?: string; readonly off?: true; readonly on?: true }

async function set(config: Config, id: string, options: SetOptions): Promise<void> {
  const { tokenizer, displayName, ownedBy } = options
  const given = {
    contextWindow: tokens('--context-window', options.contextWindow),
    outputCap: tokens('--output-cap', options.outputCap),
    outputMost: tokens('--output-most', options.outputMost),
    tokenizer: tokenizer === undefined ? undefined : tokenizerOf(tokenizer),
    displayName,
    ownedBy,
    enabled: enabledOf('a model', options),
    partTokens: {
      image: tokensOrNone('--image-tokens', options.imageTokens),
      audio: tokensOrNone('--audio-tokens', options.audioTokens),
      file: tokensOrNone('--file-tokens', options.fileTokens),
    },
  }
  await withPools(config, async ({ rest: pool }) => {
    await saveModel({ pool, by: operator() }, { id, ...given })
    const [model] = await listModels({ pool }, id)
    if (model === undefined) throw new Error(`the model ${id} was removed meanwhile`)
    print(`${summaryOf(model)}.`)
    for (const missing of missingOf(model)) print(missing)
  })
}

/** What a model still needs before it can be sold. */
function missingOf({ id, price, routes }: ModelListed): readonly string[] {
  return [
    ...(price === null ? [`It has no price, so calls are refused: see farebox models price ${id}.`] : []),
    ...(routes.length === 0 ? [`It has no route, so calls are refused: see farebox models route ${id}.`] : []),
  ]
}

type Plain = Omit<
  NewModelPrice,
  'model' | 'images' | 'providerImages' | 'videos' | 'providerVideos' | 'classes' | 'providerClasses'
>
type PriceOptions = Plain &
  ClassOptions & {
    /** False where they are to end. */
    readonly classes: boolean
    readonly belowCost?: true
    readonly providerClass?: readonly string[]
    readonly providerAbove?: readonly string[]
    readonly providerTier?: readonly string[]
    readonly providerTool?: readonly string[]
    readonly image?: readonly string[]
    readonly providerImage?: readonly string[]
    readonly video?: readonly string[]
    readonly providerVideo?: readonly string[]
  }

async function price(config: Config, model: string, options: PriceOptions): Promise<void> {
  const { image, providerImage, video, providerVideo, classes: mayKeep, belowCost, ...tokenPrices } = options
  const { classes, providerClasses, prices } = classesIn(tokenPrices)
  if (!mayKeep && classes !== undefined)
    throw new Error('--no-classes removes what --class, --above, --tier and --tool set: do not give both')
  const images = image && kindPrices(image, A_PICTURE)
  const videos = video && kindPrices(video, A_VIDEO)
  const kinds = {
    ...(classes !== undefined && { classes }),
    ...(providerClasses !== undefined && { providerClasses }),
    ...(images !== undefined && { images }),
    ...(providerImage !== undefined && { providerImages: kindPrices(providerImage, A_PICTURE) }),
    ...(videos !== undefined && { videos }),
    ...(providerVideo !== undefined && { providerVideos: kindPrices(providerVideo, A_VIDEO) }),
  }
  await withPools(config, async ({ rest: pool }) => {
    const given = { model, ...prices, ...kinds }
    const version = await setModelPrice({ pool, by: operator() }, given, {
      mayEndClasses: !mayKeep,
      mayLose: belowCost === true,
    })
    const { input, output, cacheRead = input, cacheWrite = input } = prices
    const byKind = kindsText({ images, videos })
    print(
      byKind !== undefined
        ? `Price of ${model}, version ${version}: ${byKind}; tokens are free.`
        : `Price of ${model}, version ${version}, in USD per million tokens: ` +
            `input ${input}, output ${output}, cache read ${cacheRead}, cache write ${cacheWrite}.`,
    )
    if (classes !== undefined) print(`Further prices: ${JSON.stringify(classes)}`)
    for (const line of marginLines((await marginsByModel(pool, [model])).get(model) ?? [])) print(line)
  })
}

type TokenOptions = Omit<PriceOptions, 'classes' | 'belowCost' | 'image' | 'providerImage' | 'video' | 'providerVideo'>

function classesIn(options: TokenOptions) {
  const { class: classes, above, tier, tool, toolCalls, toolInput, ...others } = options
  const { providerClass, providerAbove, providerTier, providerTool, ...prices } = others
  const given = { class: classes, above, tier, tool, toolCalls, toolInput }
  const costs = { class: providerClass, above: providerAbove, tier: providerTier, tool: providerTool }
  return { classes: classPricesIn(given), providerClasses: classPricesIn(costs), prices }
}

const A_PICTURE = 'size/quality=usd, such as 1024x1024/high=0.167'
const A_VIDEO = 'resolution=usd, such as 720P=0.10'

function kindPrices(texts: readonly string[], such: string): KindPrices {
  const prices: Record<string, string> = {}
  for (const text of texts) {
    const [, kind = '', usd = ''] = /^([^=]+)=(.+)$/.exec(text) ?? []
    if (kind === '') throw new Error(`${JSON.stringify(text)} must be ${such}`)
    if (Object.hasOwn(prices, kind)) throw new Error(`${kind} is given twice`)
    prices[kind] = usd
  }
  return prices
}

type ByKind = { readonly images?: KindPrices | null | undefined; readonly videos?: KindPrices | null | undefined }

/** Undefined where a model is sold by the token. */
function kindsText({ images, videos }: ByKind): string | undefined {
  const list = (prices: KindPrices) => Object.entries(prices).map(([kind, usd]) => `${kind} ${usd}`)
  if (images) return `${list(images).join(', ')} USD per image`
  return videos ? `${list(videos).join(', ')} USD per second of video` : undefined
}

type RouteOptions = {
  readonly slot: string
  readonly protocol: string
  readonly upstreamModel?: string
  readonly priority?: string
  readonly weight?: string
  readonly outputLimit?: string
  readonly unknown?: string
  readonly reasoning?: string
  readonly onAbort?: string
  readonly output?: string
  readonly tokenBytes?: string
  readonly topSpeed?: string
  readonly off?: true
  readonly on?: true
}

async function route(config: Config, model: string, options: RouteOptions): Promise<void> {
  const { slot, upstreamModel = model } = options
  const enabled = enabledOf('a route', options)
  const protocol = protocolOf(options.protocol)
  const priority = options.priority === undefined ? undefined : wholeNumber('--priority', options.priority)
  const weight = options.weight === undefined ? undefined : wholeNumber('--weight', options.weight)
  const profile = profileOf(options)
  await withPools(config, async ({ rest: pool }) => {
    const given = { model, slot, protocol, upstreamModel, priority, weight, enabled, profile }
    const id = await saveRoute({ pool, ids, by: operator() }, given)
    const isOn = (await listModels({ pool })).some(({ routes }) => routes.some((one) => one.id === id && one.enabled))
    print(
      !isOn
        ? `Route ${id} is off.`
        : `Route ${id}: ${model} is sent to slot ${slot} as ${upstreamModel}, protocol ${protocol}.`,
    )
    if ((await listUpstreams({ pool }, slot)).length === 0)
      print(`Slot ${slot} has no upstream yet: see farebox upstreams add ${slot}.`)
  })
}

/** Undefined where neither is said: then it stays as it is. */
function enabledOf(what: string, { on, off }: { readonly on?: true; readonly off?: true }): boolean | undefined {
  if (on === true && off === true) throw new Error(`${what} is on or off: give either --on or --off`)
  return off === true ? false : on
}

/** What is named of a route's profile. */
function profileOf(options: RouteOptions): RouteSettings['profile'] {
  const { outputLimit, unknown, reasoning, onAbort, output, tokenBytes, topSpeed } = options
  return {
    outputLimit: outputLimit === 'none' ? null : outputLimit,
    unknown: choiceOf('--unknown', unknown, { refuse: 'refuse', pass: 'pass' }),
    reasoning: choiceOf('--reasoning', reasoning, { within: 'within', apart: 'apart' }),
    abort: choiceOf('--on-abort', onAbort, { stops: 'stops', 'runs-on': 'runs_on' }),
    output: choiceOf('--output', output, { seen: 'seen', hidden: 'hidden' }),
    tokenBytes: tokenBytes === undefined ? undefined : wholeNumber('--token-bytes', tokenBytes),
    topSpeed: topSpeed === 'none' ? null : topSpeed === undefined ? undefined : wholeNumber('--top-speed', topSpeed),
  }
}

function choiceOf<Value extends string>(
  option: string,
  text: string | undefined,
  choices: Readonly<Record<string, Value>>,
): Value | undefined {
  if (text === undefined) return undefined
  const found = Object.hasOwn(choices, text) ? choices[text] : undefined
  if (found === undefined) throw new Error(`${option} must be one of ${Object.keys(choices).join(', ')}`)
  return found
}

async function remove(config: Config, model: string, route: string | undefined): Promise<void> {
  const routeId = route === undefined ? undefined : idOf(route)
  await withPools(config, async ({ rest: pool }) => {
    if (routeId === undefined) {
      await removeModel({ pool, by: operator() }, model)
      print(`Model ${model} is removed.`)
    } else {
      await removeRoute({ pool, by: operator() }, model, routeId)
      print(`Route ${routeId} is removed.`)
    }
  })
}

async function list(config: Config): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const all = await listModels({ pool })
    if (all.length === 0) return print('There are no models: see farebox models set.')
    const margins = await marginsByModel(
      pool,
      all.map(({ id }) => id),
    )
    for (const model of all) {
      const known = margins.get(model.id) ?? []
      print(`${summaryOf(model)}  ${priceText(model)}${known.length === 0 ? '' : `  margin ${marginsText(known)}`}`)
      for (const one of model.routes)
        print(
          `  ${one.id}  ${one.slot}  ${one.protocol}  ${one.upstreamModel}  priority ${one.priority}  ` +
            `weight ${one.weight}${profileText(one.profile)}${one.enabled ? '' : '  off'}`,
        )
    }
  })
}

/** What differs from what its protocol says. */
function profileText(profile: RouteProfile): string {
  const { outputLimit, unknown, reasoning, abort, output, tokenBytes, topSpeed } = profile
  const differing = [
    outputLimit === null ? '' : `limit ${outputLimit}`,
    unknown === PLAIN_PROFILE.unknown ? '' : `unknown ${unknown}`,
    reasoning === PLAIN_PROFILE.reasoning ? '' : `reasoning ${reasoning}`,
    abort === PLAIN_PROFILE.abort ? '' : `on abort ${abort}`,
    output === PLAIN_PROFILE.output ? '' : `output ${output}`,
    tokenBytes === PLAIN_PROFILE.tokenBytes ? '' : `${tokenBytes} bytes per token`,
    topSpeed === null ? '' : `${topSpeed} tokens per second`,
  ]
  return differing.map((text) => (text === '' ? '' : `  ${text}`)).join('')
}

function summaryOf({ id, contextWindow, outputCap, outputMost, partTokens, tokenizer, enabled }: ModelListed): string {
  const parts = Object.entries(partTokens).map(([kind, most]) => `  ${kind} ${most}`)
  const limits = `window ${contextWindow}  output ${outputCap} to ${outputMost}${parts.join('')}`
  return `${id}  ${limits}  ${tokenizer}${enabled ? '' : '  off'}`
}

function priceText({ price }: ModelListed): string {
  if (price === null) return 'no price'
  const { version, input, output, cacheRead, cacheWrite } = price
  const byKind = kindsText(price)
  if (byKind !== undefined) return `${byKind}  version ${version}`
  const all = [input, output, cacheRead ?? input, cacheWrite ?? input]
  const more = price.classes === null ? '' : `  further prices ${JSON.stringify(price.classes)}`
  return `${all.join(' / ')} USD per million (in / out / cache read / cache write)${more}  version ${version}`
}

function tokens(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const count = wholeNumber(option, text)
  if (count < 1) throw new Error(`${option} must be a whole number above 0`)
  return count
}

function tokensOrNone(option: string, text: string | undefined): number | null | undefined {
  return text === 'none' ? null : tokens(option, text)
}

function wholeNumber(option: string, text: string): number {
  if (!/^-?\d{1,9}$/.test(text)) throw new Error(`${option} must be a whole number`)
  return Number(text)
}

function tokenizerOf(text: string): Tokenizer {
  const found = TOKENIZERS.find((name) => name === text)
  if (found === undefined)
    throw new Error(`there is no tokenizer ${JSON.stringify(text)}: use one of ${TOKENIZERS.join(', ')}`)
  return found
}

function protocolOf(text: string): ProtocolName {
  const found = PROTOCOL_NAMES.find((name) => name === text)
  if (found === undefined)
    throw new Error(`there is no protocol ${JSON.stringify(text)}: use one of ${PROTOCOL_NAMES.join(', ')}`)
  return found
}
