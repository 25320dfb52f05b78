import { z } from 'zod'
import {
  listModels,
  type ModelListed,
  removeModel,
  removeRoute,
  saveModel,
  switchModel,
} from '../pricing/configure-models.ts'
import { TOKENIZERS } from '../pricing/models.ts'
import { PLAIN_PROFILE, type RouteProfile } from '../protocols/route-profile.ts'
import type { Tokenizer } from '../upstreams/tokens/count-tokens.ts'
import { action, field } from './action.ts'
import { idField, NO_INPUT, reasonOf } from './fields.ts'
import { kindsText, marginsByModel, marginsText, ownPrice, price } from './model-prices.ts'
import { integerOf, route } from './model-routes.ts'

const list = action({
  name: 'models list',
  summary: 'list all models with their prices and routes',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  async run({ pool }) {
    const all = await listModels({ pool })
    const margins = await marginsByModel(
      pool,
      all.map(({ id }) => id),
    )
    return all.map((model) => ({ ...model, margins: margins.get(model.id) ?? [] }))
  },
  lines: (all) =>
    all.length === 0
      ? ['There are no models: see farebox models set.']
      : all.flatMap((model) => [
          `${summaryOf(model)}  ${priceText(model)}${model.margins.length === 0 ? '' : `  margin ${marginsText(model.margins)}`}`,
          ...model.routes.map(
            (one) =>
              `  ${one.id}  ${one.slot}  ${one.protocol}  ${one.upstreamModel}  priority ${one.priority}  ` +
              `weight ${one.weight}${profileText(one.profile)}${one.enabled ? '' : '  off'}`,
          ),
        ]),
})

const tokens = (description: string) => field('tokens', description, tokensOf).optional()
const tokensOrNone = (description: string) =>
  field('tokens', description, (text) => (text === 'none' ? null : tokensOf(text))).optional()

function tokensOf(text: string): number {
  const count = integerOf(text)
  if (count < 1) throw new Error('must be a whole number above 0')
  return count
}

function tokenizerOf(text: string): Tokenizer {
  const found = TOKENIZERS.find((name) => name === text)
  if (found === undefined)
    throw new Error(`there is no tokenizer ${JSON.stringify(text)}: use one of ${TOKENIZERS.join(', ')}`)
  return found
}

const model = field('model', 'id of the model', String)

const set = action({
  name: 'models set',
  summary: 'create a model, or change the named settings of one; effective within a second',
  effect: 'writes',
  positional: ['model'],
  input: z.object({
    model,
    contextWindow: tokens('maximum tokens of input and output together (required for a new model)'),
    outputCap: tokens('output limit when the caller sends none (required for a new model)'),
    outputMost: tokens('maximum output limit that a caller may send (required for a new model)'),
    imageTokens: tokensOrNone('maximum tokens of one image, or none if unknown (new model: none)'),
    audioTokens: tokensOrNone('maximum tokens of one audio part, or none if unknown (new model: none)'),
    fileTokens: tokensOrNone('maximum tokens of one file, or none if unknown (new model: none)'),
    tokenizer: field(
      'name',
      `tokenizer when the provider reports no usage: ${TOKENIZERS.join(', ')} (new model: bytes_3)`,
      tokenizerOf,
    ).optional(),
    displayName: field('text', 'name shown to people (new model: its id)', String).optional(),
    ownedBy: field('text', 'maker of the model (new model: the part of its id before /)', String).optional(),
  }),
  async run({ pool, by }, { model: id, imageTokens, audioTokens, fileTokens, ...settings }) {
    const partTokens = { image: imageTokens, audio: audioTokens, file: fileTokens }
    await saveModel({ pool, by }, { id, ...settings, partTokens })
    const [saved] = await listModels({ pool }, id)
    if (saved === undefined) throw new Error(`the model ${id} was removed meanwhile`)
    return saved
  },
  lines: (saved) => [`${summaryOf(saved)}.`, ...missingOf(saved)],
})

/** What a model still needs before it can be sold. */
function missingOf({ id, price: own, routes }: ModelListed): readonly string[] {
  return [
    ...(own === null ? [`It has no price, so calls are refused: see farebox models price ${id}.`] : []),
    ...(routes.length === 0 ? [`It has no route, so calls are refused: see farebox models route ${id}.`] : []),
  ]
}

const off = action({
  name: 'models off',
  summary: 'stop selling a model, within a second; open tasks and quotes given before are honoured',
  effect: 'writes',
  positional: ['model'],
  input: z.object({ model, reason: field('text', 'why it is no longer sold: kept in the audit log', reasonOf) }),
  async run({ pool, by }, { model: id, reason }) {
    return { model: id, reason, isNew: await switchModel({ pool, by }, { id, enabled: false, reason }) }
  },
  lines: ({ model: id, isNew }) => [
    isNew
      ? `Model ${id} is off: calls are refused with 404 not_sold. Quotes given before can be used until they expire, and tasks under way go on.`
      : `Model ${id} was off already. Nothing was changed.`,
  ],
})

const on = action({
  name: 'models on',
  summary: 'sell a model again, within a second',
  effect: 'writes',
  positional: ['model'],
  input: z.object({ model, reason: field('text', 'why it is sold again: kept in the audit log', reasonOf) }),
  async run({ pool, by }, { model: id, reason }) {
    const isNew = await switchModel({ pool, by }, { id, enabled: true, reason })
    const [saved] = await listModels({ pool }, id)
    if (saved === undefined) throw new Error(`the model ${id} was removed meanwhile`)
    return { model: id, reason, isNew, missing: missingOf(saved) }
  },
  lines: ({ model: id, isNew, missing }) => [
    isNew ? `Model ${id} is on.` : `Model ${id} was on already. Nothing was changed.`,
    ...missing,
  ],
})

const remove = action({
  name: 'models remove',
  summary: 'remove a model with its routes, or one route of it',
  effect: 'writes',
  positional: ['model'],
  input: z.object({
    model,
    route: idField('id', 'remove only this route (default: the model and all its routes)').optional(),
  }),
  async run({ pool, by }, { model: id, route: routeId = null }) {
    if (routeId === null) await removeModel({ pool, by }, id)
    else await removeRoute({ pool, by }, id, routeId)
    return { model: id, route: routeId }
  },
  lines: ({ model: id, route: routeId }) => [
    routeId === null ? `Model ${id} is removed.` : `Route ${routeId} is removed.`,
  ],
})

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

function priceText({ price: own }: ModelListed): string {
  if (own === null) return 'no price'
  const { version, input, output, cacheRead, cacheWrite } = own
  const byKind = kindsText(own)
  if (byKind !== undefined) return `${byKind}  version ${version}`
  const all = [input, output, cacheRead ?? input, cacheWrite ?? input]
  const more = own.classes === null ? '' : `  further prices ${JSON.stringify(own.classes)}`
  return `${all.join(' / ')} USD per million (in / out / cache read / cache write)${more}  version ${version}`
}

export const models = [list, set, on, off, price, route, remove, ownPrice]
