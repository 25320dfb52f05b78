import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from '../../harness/root.ts'
import type { Shape, Table } from '../../server/src/catalogue/member-table.ts'
import { MESSAGES } from '../../server/src/protocols/anthropic-members.ts'
import { ANTHROPIC_BETAS, type Betas, familyOf, OPENAI_BETAS } from '../../server/src/protocols/betas.ts'
import {
  CONTENT_REQUEST,
  COUNT_REQUEST,
  EMBED_REQUEST,
  GENERATION_CONFIG,
} from '../../server/src/protocols/gemini-members.ts'
import { CHAT, EMBEDDINGS, IMAGES } from '../../server/src/protocols/openai-members.ts'
import { RESPONSES } from '../../server/src/protocols/openai-responses-members.ts'
import { createDeclaredTypes, type ObjectType, textsOf } from './declared-types.ts'

const MODULES = path.join(ROOT, 'node_modules')
const OPENAI = path.join(MODULES, 'openai/resources')
const GENAI = path.join(MODULES, '@google/genai/dist/genai.d.ts')
/** Of a count: what the library keeps to itself, and an instruction, of which it makes a content. */
const CLIENT_ONLY = ['httpOptions', 'abortSignal', 'systemInstruction']
const types = createDeclaredTypes()

type Walk = { readonly seen: Set<string>; readonly missing: string[]; count: number }

/** Compares the objects of a library with our tables, as deep as those go, and notes what they do not know. */
function walk(objects: readonly ObjectType[], shape: Shape, where: string, into: Walk): Walk {
  for (const { key, members } of objects) {
    for (const table of tablesFor(members, shape, where, into)) {
      const place = `${key} ${table.title}`
      if (into.seen.has(place)) continue
      into.seen.add(place)
      for (const [name, declared] of members) {
        into.count += 1
        const spelt = table.bySpelling.get(name)
        if (spelt === undefined) into.missing.push(`${where}.${name}`)
        else if (spelt.member.within !== undefined)
          walk(types.objectsOf(declared), spelt.member.within(), `${where}.${name}`, into)
      }
    }
  }
  return into
}

/** The tables of the kinds that an object can be. Kinds that are refused have none. */
function tablesFor(members: ObjectType['members'], shape: Shape, where: string, { missing }: Walk): readonly Table[] {
  if (!('kinds' in shape)) return [shape]
  const by = members.get(shape.by)
  const kinds = by === undefined ? [] : textsOf(by)
  const tables: Table[] = []
  for (const value of kinds.length === 0 ? [undefined] : kinds) {
    const kind = shape.kindOf(value)
    const table = typeof kind === 'string' ? shape.kinds[kind] : undefined
    if (typeof table === 'object') tables.push(table)
    else if (table === undefined && shape.others === undefined) missing.push(`${where} of the kind ${value}`)
  }
  return tables
}

function shapeWithin(table: Table, name: string): Shape {
  return table.members[name]?.within?.() ?? assert.fail(name)
}

function tableWithin(table: Table, name: string): Table {
  const shape = shapeWithin(table, name)
  assert.ok('members' in shape)
  return shape
}

function assertKnown(objects: readonly ObjectType[], table: Shape, atLeast: number): void {
  const into = walk(objects, table, table.title, { seen: new Set(), missing: [], count: 0 })
  assert.deepEqual(into.missing, [])
  assert.ok(into.count >= atLeast, `${into.count} members were read`)
}

describe('the tables know every member of the request types of', () => {
  it('openai: chat completions', () => {
    const file = path.join(OPENAI, 'chat/completions/completions.d.ts')
    const objects = types.objectsNamed('ChatCompletionCreateParams', file)
    assert.equal(objects.length, 2)
    assertKnown(objects, CHAT, 100)
    // An answer of the library goes back into the next request as it came.
    const message = types.objectsNamed('ChatCompletionMessage', file)
    assertKnown(message, tableWithin(CHAT, 'messages'), 7)
  })

  it('openai: responses', () => {
    const file = path.join(OPENAI, 'responses/responses.d.ts')
    const objects = types.objectsNamed('ResponseCreateParams', file)
    assert.equal(objects.length, 2)
    assertKnown(objects, RESPONSES, 200)
    // Items of an answer go back into the next request as they came, also those that the library has parsed.
    const items = shapeWithin(RESPONSES, 'input')
    for (const name of ['ResponseOutputItem', 'ParsedResponseFunctionToolCall', 'ParsedResponseOutputMessage'])
      assertKnown(types.objectsNamed(name, file), items, 5)
  })

  it('openai: embeddings and pictures', () => {
    assertKnown(types.objectsNamed('EmbeddingCreateParams', path.join(OPENAI, 'embeddings.d.ts')), EMBEDDINGS, 5)
    assertKnown(types.objectsNamed('ImageGenerateParams', path.join(OPENAI, 'images.d.ts')), IMAGES, 30)
  })

  for (const library of ['@anthropic-ai/sdk', 'anthropic-sdk-0']) {
    for (const file of ['messages/messages.d.ts', 'beta/messages/messages.d.ts']) {
      it(`${library}: ${file}`, () => {
        const declarations = path.join(MODULES, library, 'resources', file)
        const create = types.objectsNamed('MessageCreateParams', declarations)
        assert.equal(create.length, 2)
        assertKnown(create, MESSAGES, 120)
        assertKnown(types.objectsNamed('MessageCountTokensParams', declarations), MESSAGES, 100)
      })
    }
  }

  it('@google/genai: contents', () => {
    // What the library keeps to itself, and never sends.
    const own = ['httpOptions', 'abortSignal', 'automaticFunctionCalling', 'automaticContinuation']
    const [config] = types.objectsNamed('GenerateContentConfig', GENAI)
    assert.ok(config !== undefined && own.every((name) => config.members.has(name)))
    const sent = [...config.members].filter(([name]) => !own.includes(name))
    const [above, settings] = [CONTENT_REQUEST, GENERATION_CONFIG].map((table) => ({
      key: `${config.key} of ${table.title}`,
      members: new Map(sent.filter(([name]) => table.bySpelling.has(name))),
    }))
    assert.ok(above !== undefined && settings !== undefined)
    const known = [...above.members.keys(), ...settings.members.keys()]
    assert.deepEqual(
      sent.map(([name]) => name).filter((name) => !known.includes(name)),
      [],
    )
    // The library makes a content of whatever stands there.
    above.members.delete('systemInstruction')
    assertKnown([above], CONTENT_REQUEST, 30)
    assertKnown([settings], GENERATION_CONFIG, 20)
    assertKnown(types.objectsNamed('GenerationConfig', GENAI), GENERATION_CONFIG, 25)
    const content = tableWithin(CONTENT_REQUEST, 'contents')
    assertKnown(types.objectsNamed('Content', GENAI), content, 45)
  })

  it('@google/genai: counts of tokens', () => {
    const [config] = types.objectsNamed('CountTokensConfig', GENAI)
    assert.ok(config !== undefined)
    const members = new Map([...config.members].filter(([name]) => !CLIENT_ONLY.includes(name)))
    assertKnown([{ key: config.key, members }], COUNT_REQUEST, 30)
  })

  it('@google/genai: vectors', () => {
    const [config] = types.objectsNamed('EmbedContentConfig', GENAI)
    assert.ok(config !== undefined)
    const members = new Map([...config.members].filter(([name]) => !CLIENT_ONLY.includes(name)))
    assertKnown([{ key: config.key, members }], EMBED_REQUEST, 5)
  })
})

describe('the tables know every beta that is named by', () => {
  const unknown = (betas: readonly string[], { known }: Betas) =>
    betas.filter((beta) => !Object.hasOwn(known, familyOf(beta)))

  for (const library of ['@anthropic-ai/sdk', 'anthropic-sdk-0']) {
    it(library, () => {
      const file = path.join(MODULES, library, 'resources/beta/beta.d.ts')
      const found = types.find('AnthropicBeta', file)
      assert.ok(found !== undefined && 'alias' in found.declaration)
      const betas = textsOf({ ...found, type: found.declaration.alias })
      assert.ok(betas.length >= 20, `${betas.length} betas were read`)
      assert.deepEqual(unknown(betas, ANTHROPIC_BETAS), [])
    })
  }

  it('openai', () => {
    const betas = readdirSync(OPENAI, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.mjs'))
      .flatMap((file) => [...readFileSync(path.join(OPENAI, file), 'utf8').matchAll(/'OpenAI-Beta': '([^']*)'/g)])
      .map(([, beta = '']) => beta)
    assert.ok(betas.length >= 20, `${betas.length} betas were read`)
    assert.deepEqual(unknown(betas, OPENAI_BETAS), [])
  })
})
