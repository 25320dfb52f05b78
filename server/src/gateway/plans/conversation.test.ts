import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ProtocolName } from '../../protocols/protocol.ts'
import { conversationOf } from './conversation.ts'

type Said = Parameters<typeof conversationOf>[0]

const plain: Said = {
  accountId: 'account',
  model: 'maker/model',
  protocol: 'openai',
  body: {},
  headers: {},
  endUser: undefined,
}
const keyOf = (said: Partial<Said>) => conversationOf({ ...plain, ...said }).key
const same = (one: Partial<Said>, other: Partial<Said>) => assert.equal(keyOf(one), keyOf(other))
const differ = (one: Partial<Said>, other: Partial<Said>) => assert.notEqual(keyOf(one), keyOf(other))

type Words = { system?: string; tool?: string; first?: string; turns?: number }

/** A conversation in each protocol, as it is sent in its turns. */
const BODIES: Partial<Record<ProtocolName, (words: Words) => unknown>> = {
  openai: ({ system = 'Be brief.', tool = 'look', first = 'Hello', turns = 1 }) => ({
    tools: [{ type: 'function', function: { name: tool, parameters: {} } }],
    messages: [{ role: 'system', content: system }, ...messages(first, turns)],
  }),
  openai_responses: ({ system = 'Be brief.', tool = 'look', first = 'Hello', turns = 1 }) => ({
    instructions: system,
    tools: [{ type: 'function', name: tool }],
    input: messages(first, turns),
  }),
  anthropic: ({ system = 'Be brief.', tool = 'look', first = 'Hello', turns = 1 }) => ({
    system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
    tools: [{ name: tool, input_schema: {} }],
    messages: messages(first, turns),
  }),
  gemini: ({ system = 'Be brief.', tool = 'look', first = 'Hello', turns = 1 }) => ({
    systemInstruction: { parts: [{ text: system }] },
    tools: [{ functionDeclarations: [{ name: tool }] }],
    contents: messages(first, turns).map(({ role, content }) => ({
      role: role === 'user' ? 'user' : 'model',
      parts: [{ text: content }],
    })),
  }),
}

function messages(first: string, turns: number) {
  return Array.from({ length: turns }, (_, at) => [
    { role: 'user', content: at === 0 ? first : `And ${at}?` },
    { role: 'assistant', content: `Answer ${at}` },
  ])
    .flat()
    .slice(0, -1)
}

describe('the key of a conversation', () => {
  for (const [protocol, bodyOf] of Object.entries(BODIES) as [ProtocolName, (words: Words) => unknown][])
    it(`of ${protocol} is that of its beginning, in every turn`, () => {
      const of = (words: Words) => ({ protocol, body: bodyOf(words) })
      same(of({}), of({ turns: 8 }))
      for (const other of [{ first: 'Hi' }, { system: 'Be long.' }, { tool: 'find' }]) differ(of({}), of(other))
      differ(of({}), { ...of({}), accountId: 'another' })
      differ(of({}), { ...of({}), model: 'maker/another' })
    })

  it('is what the caller names, before anything else', () => {
    const body = (key: string, first: string) => ({
      prompt_cache_key: key,
      messages: [{ role: 'user', content: first }],
      metadata: { user_id: first },
    })
    const headers = (session: string) => ({ 'x-claude-code-session-id': session })
    same({ body: body('k', 'a') }, { body: body('k', 'b'), headers: headers('s'), endUser: 'u' })
    differ({ body: body('k', 'a') }, { body: body('l', 'a') })
    differ({ body: body('k', 'a') }, { body: body('k', 'a'), accountId: 'another' })
    same({ body: body(' ', 'a'), headers: headers('s') }, { body: body(' ', 'b'), headers: headers('s') })
    differ({ body: body('', 'a'), headers: headers('s') }, { body: body('', 'a'), headers: headers('t') })
    same({ body: body('', 'a'), endUser: 'u' }, { body: body('', 'a'), endUser: 'v' })
    same({ body: { messages: [] }, endUser: 'u' }, { body: { messages: ['x'] }, endUser: 'u' })
    differ({ endUser: 'u' }, { endUser: 'v' })
  })

  it('tells how several conversations of one name begin', () => {
    const of = (first: string) => {
      const body = { prompt_cache_key: 'all', messages: [{ role: 'user', content: first }] }
      return conversationOf({ ...plain, body })
    }
    assert.equal(of('a').key, of('b').key)
    assert.equal(of('a').opening(), of('a').opening())
    assert.notEqual(of('a').opening(), of('b').opening())
    assert.equal(of('a').opening(), keyOf({ body: { messages: [{ role: 'user', content: 'a' }] } }))
  })

  it('tells how conversations go on that begin alike', () => {
    const of = (first: string, ...next: readonly string[]) => {
      const said = next.map((content, at) => ({ role: at % 2 === 0 ? 'assistant' : 'user', content }))
      return conversationOf({
        ...plain,
        body: { messages: [{ role: 'user', content: first }, ...said] },
      }).continuation()
    }
    assert.equal(of('a'), undefined)
    assert.equal(of('a', 'b', 'c'), of('a', 'b', 'c', 'd', 'e'))
    assert.notEqual(of('a', 'b', 'c'), of('a', 'b', 'd'))
    assert.notEqual(of('a', 'b', 'c'), of('z', 'b', 'c'))
  })

  it('does not hang on the form of a message, nor on where the marks of the cache stand', () => {
    const inParts = (mark: object) => ({
      protocol: 'anthropic' as const,
      body: { system: 'Be brief.', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello', ...mark }] }] },
    })
    const alone = {
      protocol: 'anthropic' as const,
      body: {
        system: [{ type: 'text', text: 'Be brief.' }],
        messages: [
          { role: 'user', content: 'Hello' },
          { role: 'assistant', content: 'Hi' },
        ],
      },
    }
    same(inParts({}), inParts({ cache_control: { type: 'ephemeral' } }))
    same(inParts({}), alone)
    const responses = (input: unknown) => ({ protocol: 'openai_responses' as const, body: { input } })
    same(responses('Hello'), responses([{ role: 'user', content: [{ type: 'input_text', text: 'Hello' }] }]))
  })

  it('sees both ends of long texts, and pictures', () => {
    const long = (start: string, end: string) => ({
      body: { messages: [{ role: 'user', content: `${start}${'-'.repeat(100_000)}${end}` }] },
    })
    differ(long('a', 'z'), long('b', 'z'))
    differ(long('a', 'z'), long('a', 'y'))
    same(long('a', 'z'), long('a', 'z'))
    const picture = (url: string) => ({
      body: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
    })
    differ(picture('https://a.example/1'), picture('https://a.example/2'))
  })

  it('is there for whatever is sent', () => {
    const wide = Array.from({ length: 100 }, () => ({ a: Array.from({ length: 100 }, () => ({ b: ['c', ['d']] })) }))
    for (const protocol of ['openai', 'openai_responses', 'anthropic', 'gemini', 'openai_images', 'video'] as const)
      for (const body of [undefined, null, 1, 'text', [], {}, { messages: wide, input: wide, contents: wide }])
        assert.ok(Number.isSafeInteger(keyOf({ protocol, body })))
    for (const messages of [[], [null], [{ role: 'assistant', content: 'Hi' }], 'text', { role: 'user' }])
      assert.ok(keyOf({ body: { messages, tools: 'none' } }) >= 0)
  })
})
