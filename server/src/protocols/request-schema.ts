import { z } from 'zod'
import {
  type Choice,
  inSnakeCase,
  type JsonSchema,
  type Member,
  type Shape,
  type Table,
} from '../catalogue/member-table.ts'
import { MEMBER_WORDS } from '../catalogue/member-words.ts'
import { type DataOperation, isSoldByUnit, type Operation } from '../catalogue/operation.ts'
import { RERANK } from '../catalogue/operations/rerank-members.ts'
import { MESSAGES } from './anthropic-members.ts'
import { BATCH_EMBED_REQUEST, CONTENT_REQUEST, COUNT_REQUEST, EMBED_REQUEST } from './gemini-members.ts'
import { CHAT, EMBEDDINGS, IMAGES } from './openai-members.ts'
import { RESPONSES } from './openai-responses-members.ts'
import { VIDEO_REQUEST } from './video.ts'

/**
 * What a request of an operation may have, as a JSON Schema: for contracts, tools and forms. It is loose. It says what we read,
 * price and refuse, and leaves the rest to the vendor; who parses a request refuses more. Null is as if the member were left out.
 */
export function requestSchemaOf(operation: Operation): JsonSchema {
  const { summary: title } = operation
  const { properties = {}, ...rest } = isSoldByUnit(operation)
    ? schemaOfData(operation)
    : schemaOfTable(TABLES[operation.protocol])
  const members = Object.entries(z.record(z.string(), z.looseObject({})).parse(properties)).map(([name, member]) => [
    name,
    explained(name, member),
  ])
  return { ...HEAD, title, ...rest, properties: Object.fromEntries(members) }
}

/** With what it means, before what is said of its price. */
function explained(name: string, member: JsonSchema): JsonSchema {
  const inCamelCase = name.replace(/_(?<letter>[a-z])/g, (_, letter: string) => letter.toUpperCase())
  const words = MEMBER_WORDS[name] ?? MEMBER_WORDS[inCamelCase]
  if (words === undefined || member.not !== undefined) return member
  return { ...member, description: [words, member.description].filter((part) => part !== undefined).join(' ') }
}

const HEAD: JsonSchema = { $schema: 'https://json-schema.org/draft/2020-12/schema' }

/** By which requests are read, or described where a protocol reads little. */
export const TABLES: Readonly<Record<NonNullable<Operation['protocol']>, Table>> = {
  openai: CHAT,
  openai_responses: RESPONSES,
  openai_embeddings: EMBEDDINGS,
  openai_images: IMAGES,
  anthropic: MESSAGES,
  anthropic_count_tokens: MESSAGES,
  gemini: CONTENT_REQUEST,
  gemini_stream: CONTENT_REQUEST,
  gemini_count_tokens: COUNT_REQUEST,
  gemini_embeddings: EMBED_REQUEST,
  gemini_batch_embeddings: BATCH_EMBED_REQUEST,
  video: VIDEO_REQUEST,
}

/** Of operations that have a schema of their own and a table beside it. */
const TABLES_OF_DATA: Readonly<Record<string, Table>> = { rerank: RERANK }

const inputSchema = z.looseObject({ properties: z.record(z.string(), z.looseObject({})).default({}) })

/** What its own schema says, with what is priced and refused. */
function schemaOfData({ id, input, refuses = {}, priced = {} }: DataOperation): JsonSchema {
  const { $schema, properties, ...rest } = inputSchema.parse(
    z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }),
  )
  const table = TABLES_OF_DATA[id]
  const { properties: known = {}, ...ofTable } = table === undefined ? {} : schemaOfTable(table)
  const described: Record<string, JsonSchema> = { ...Object(known) }
  for (const [name, own] of Object.entries(properties)) described[name] = { ...described[name], ...own }
  for (const [name, example] of Object.entries(priced))
    described[name] = { ...described[name], description: `Priced. Write it such as ${example}.` }
  for (const [name, why] of Object.entries(refuses)) described[name] = refusal(why)
  return { ...ofTable, ...rest, ...(table && { additionalProperties: othersOf(table) }), properties: described }
}

/** A body, with all that stands within it under $defs. */
function schemaOfTable(table: Table): JsonSchema {
  const { refTo, definitions } = createDefinitions()
  const own = ofTable(table, refTo)
  return { ...own, type: 'object', $defs: definitions }
}

type RefTo = (shape: Shape) => JsonSchema

/** Each shape once, however often it is met, so that it may hold itself. */
function createDefinitions(): { readonly refTo: RefTo; readonly definitions: Readonly<Record<string, JsonSchema>> } {
  const names = new Map<Shape, string>()
  const definitions: Record<string, JsonSchema> = {}

  function refTo(shape: Shape): JsonSchema {
    const known = names.get(shape)
    if (known !== undefined) return { $ref: `#/$defs/${known}` }
    const plain = shape.title.replace(/[^A-Za-z0-9]+/g, '_')
    const name = Object.hasOwn(definitions, plain) ? `${plain}_${names.size}` : plain
    names.set(shape, name)
    // Its place is taken before it is met again within itself.
    definitions[name] = {}
    definitions[name] = { title: shape.title, ...('kinds' in shape ? ofChoice(shape, refTo) : ofTable(shape, refTo)) }
    return { $ref: `#/$defs/${name}` }
  }
  return { refTo, definitions }
}

function ofTable(table: Table, refTo: RefTo): JsonSchema {
  const { members, spelling, required } = table
  const properties: Record<string, JsonSchema> = {}
  for (const [name, member] of Object.entries(members)) {
    const schema = ofMember(member, required.includes(name), refTo)
    properties[name] = schema
    if (spelling === 'camel or snake') properties[inSnakeCase(name)] = schema
  }
  return {
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: othersOf(table),
  }
}

function othersOf({ others }: Pick<Table, 'others'>): JsonSchema | true {
  return others === undefined ? true : refusal(others)
}

function ofMember(member: Member, isRequired: boolean, refTo: RefTo): JsonSchema {
  if (member.is === 'refused') return refusal(member.why)
  if (member.is === 'needing') return { ...(member.within && refTo(member.within())), ...refusal(unlessPriced(member)) }
  if (member.is === 'limited') return ofLimited(member)
  const description = member.is === 'priced' ? { description: `Priced: ${member.how}.` } : {}
  const { within, form, json = {} } = member
  const schema = { ...json, ...(within && ofWithin(form, refTo(within()))) }
  return {
    ...description,
    ...schema,
    ...('type' in schema && { type: isRequired ? schema.type : orNull(schema.type) }),
  }
}

/** Schemas are of models with plain prices: what others sell beside that is said, and not described. */
function unlessPriced({ need, why }: { readonly need: string; readonly why: string }): string {
  return `unless the model has a price of ${need}: ${why}`
}

function ofLimited({ to, isList, why }: Extract<Member, { is: 'limited' }>): JsonSchema {
  const description = `Limited: ${why}`
  const one = { enum: [...to, null] }
  return isList ? { description, anyOf: [one, { type: 'array', items: { enum: to } }] } : { description, ...one }
}

/** A table has no type of its own: what is no object may stand in its place, unless the member has a form. */
function ofWithin(form: Member['form'], ref: JsonSchema): JsonSchema {
  switch (form) {
    case undefined:
      return { ...ref, items: ref }
    case 'object':
      return { ...ref, type: 'object' }
    case 'list':
      return { type: 'array', items: { ...ref, type: 'object' } }
    case 'objects':
      return { ...ref, type: ['object', 'array'], items: { ...ref, type: 'object' } }
  }
}

function orNull(type: unknown): readonly unknown[] {
  return [...(Array.isArray(type) ? type : [type]), 'null']
}

/** A text where parts may stand, for example. */
const NO_OBJECT: JsonSchema = { not: { type: 'object' } }

/** Kinds that are not known are left to the vendor, unless they are refused. */
function ofChoice({ by, kinds, others, isDated, whenLeftOut }: Choice, refTo: RefTo): JsonSchema {
  const named = (kind: string): JsonSchema =>
    isDated ? { type: 'string', pattern: `^${kind}(_\\d{8})?$` } : { const: kind }
  const known = Object.entries(kinds).map(([kind, table]): JsonSchema => {
    const isDefault = kind === whenLeftOut
    const value = isDefault ? { anyOf: [named(kind), { type: 'null' }] } : named(kind)
    const own = { title: kind, type: 'object', properties: { [by]: value }, ...(!isDefault && { required: [by] }) }
    if (typeof table === 'string') return { ...own, ...refusal(table) }
    return { ...own, ...refTo(table), ...(table.needs && refusal(unlessPriced(table.needs))) }
  })
  // What is left out is of a kind that is known, where there is a default.
  const hasDefault = whenLeftOut !== undefined
  const names = [...Object.keys(kinds).map(named), ...(hasDefault ? [{ type: 'null' }] : [])]
  const other = {
    type: 'object',
    properties: { [by]: { not: { anyOf: names } } },
    ...(hasDefault && { required: [by] }),
  }
  return { oneOf: [NO_OBJECT, ...known, ...(others === undefined ? [other] : [])] }
}

function refusal(why: string): JsonSchema {
  return { not: {}, description: `Refused: ${why}` }
}
