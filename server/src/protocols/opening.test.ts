import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { continuationOf, endsOf, openingOf } from './opening.ts'
import type { ProtocolName } from './protocol.ts'

const said = (role: string, content: unknown) => ({ role, content })
const times = <T>(count: number, one: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => one(at))
const texts = (count: number, word: string) => times(count, (at) => ({ type: 'text', text: `${word} ${at}` }))

/** The system prompt, the tools, the first message and those after it, where each protocol has them. */
const BODIES: Partial<
  Record<ProtocolName, (system: unknown, tools: unknown, messages: readonly unknown[]) => unknown>
> = {
  openai: (system, tools, messages) => ({ tools, messages: [said('system', system), ...messages] }),
  openai_responses: (instructions, tools, input) => ({ instructions, tools, input }),
  anthropic: (system, tools, messages) => ({ system, tools, messages }),
  gemini: (parts, tools, messages) => ({
    systemInstruction: { parts },
    tools: [{ functionDeclarations: tools }],
    contents: messages,
  }),
}
const PROTOCOLS = Object.entries(BODIES) as [ProtocolName, NonNullable<(typeof BODIES)['openai']>][]

/** A value with 8 others on each of its levels, that tells each time when somebody looks at one. */
function deep(levels: number, look: () => void): unknown {
  if (levels === 0) return Object.defineProperty({}, 'text', { get: look })
  const inside = deep(levels - 1, look)
  const members = times(8, (at) => [`member_${at}`, inside])
  return levels % 2 === 0
    ? members.map(([, member]) => member)
    : Object.defineProperty(Object.fromEntries(members), 'text', { get: look })
}

describe('how a conversation begins', () => {
  for (const [protocol, bodyOf] of PROTOCOLS) {
    it(`tells tools and first messages apart behind a system prompt of many parts: ${protocol}`, () => {
      const system = times(8, (at) => ({ content: texts(8, `rules ${at}`) }))
      const opening = (tool: string, first: string) =>
        openingOf(protocol, bodyOf(system, [{ name: tool }], [said('user', first)]))
      assert.equal(opening('look', 'Hello'), opening('look', 'Hello'))
      assert.notEqual(opening('look', 'Hello'), opening('find', 'Hello'))
      assert.notEqual(opening('look', 'Hello'), opening('look', 'Hi'))
    })

    it(`is not what came after it: ${protocol}`, () => {
      const body = (...next: readonly unknown[]) => bodyOf('Be brief.', [], [said('user', 'Hello'), ...next])
      assert.equal(openingOf(protocol, body()), openingOf(protocol, body(said('assistant', 'Hi'))))
      assert.equal(continuationOf(protocol, body()), undefined)
      const on = (...words: readonly string[]) =>
        continuationOf(protocol, body(...words.map((word, at) => said(at % 2 === 0 ? 'assistant' : 'user', word))))
      assert.notEqual(on('Hi', 'And?'), on('Ho', 'And?'))
      assert.notEqual(on('Hi', 'And?'), on('Hi', 'But?'))
      assert.equal(on('Hi', 'And?'), on('Hi', 'And?', 'Well', 'Why?'))
    })

    it(`is worked out of so many values at the most, whatever is sent: ${protocol}`, () => {
      let looks = 0
      const look = () => {
        looks += 1
      }
      const value = deep(5, look)
      const tools = times(1_000, () => Object.defineProperty({}, 'name', { get: look }))
      const body = bodyOf(value, tools, [said('user', value), said('assistant', value), said('user', value)])
      openingOf(protocol, body)
      assert.ok(looks > 32 && looks <= 3 * 64, `${looks} for the opening`)
      looks = 0
      continuationOf(protocol, body)
      assert.ok(looks > 8 && looks <= 64, `${looks} for the continuation`)
    })
  }

  it('is looked for among so many messages at the most', () => {
    let looks = 0
    const message = {
      get role() {
        looks += 1
        return 'assistant'
      },
    }
    openingOf('openai', { messages: times(1_000, () => message) })
    assert.ok(looks > 0 && looks <= 32, String(looks))
  })

  it('has of lists of tools inside lists of tools no more than of one', () => {
    let looks = 0
    let tools: unknown = []
    const look = () => {
      looks += 1
    }
    for (let depth = 0; depth < 4; depth += 1) {
      const functionDeclarations = tools
      tools = times(32, () => Object.defineProperty({ functionDeclarations }, 'name', { get: look }))
    }
    openingOf('gemini', { tools })
    assert.ok(looks > 0 && looks <= 64, String(looks))
  })

  it('has the ends of a long text, and its length', () => {
    assert.equal(endsOf('x'.repeat(512)), 'x'.repeat(512))
    assert.ok(endsOf(`a${'x'.repeat(100_000)}z`).length < 600)
    const inside = (length: number) => endsOf(`${'a'.repeat(256)}${'x'.repeat(length)}${'z'.repeat(256)}`)
    assert.notEqual(inside(1_000), inside(1_001))
  })
})
