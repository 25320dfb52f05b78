import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, it } from 'node:test'
import { breachOf } from '../../harness/json-schema.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { requestSchemaOf } from '../../server/src/protocols/request-schema.ts'
import type { Question, Schema, Turn } from '../acceptance/models/sdk-client.ts'
import { CLIENTS } from '../acceptance/models/sdk-clients.ts'

/** Somebody who keeps what libraries send, and has no answer. */
const sent: { readonly path: string; readonly body: Record<string, unknown> }[] = []
const server = createServer((request, response) => {
  let text = ''
  request.on('data', (piece) => {
    text += piece
  })
  request.on('end', () => {
    sent.push({ path: request.url ?? '', body: JSON.parse(text) })
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
after(() => {
  server.closeAllConnections()
  server.close()
})

const WEATHER: Schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const user: Turn = { by: 'user', text: 'Hello' }
const QUESTIONS: Readonly<Record<string, Omit<Question, 'model'>>> = {
  'a text': { turns: [user] },
  'a conversation': { turns: [user, { by: 'assistant', text: 'Hi' }, user], limit: 20 },
  'a picture': { turns: [{ ...user, png: 'AAAA' }] },
  'a tool and its result': {
    turns: [user, { by: 'tool', call: { id: 'a', name: 'weather', input: { city: 'Oslo' } }, result: 'rain' }],
    tool: { name: 'weather', description: 'Tells the weather.', schema: WEATHER },
  },
  'an answer by a schema': { turns: [user], json: WEATHER },
  'any object': { turns: [user], json: 'any object' },
}

/** Where each operation of a conversation is asked. */
const OPERATIONS: readonly (readonly [path: RegExp, id: string])[] = [
  [/\/chat\/completions$/, 'chat_completions'],
  [/\/responses$/, 'responses'],
  [/\/messages(\?|$)/, 'messages'],
  [/:generateContent$/, 'generate_content'],
  [/:streamGenerateContent/, 'stream_generate_content'],
]

describe('what libraries send is what the schemas say', () => {
  for (const client of CLIENTS)
    for (const [name, question] of Object.entries(QUESTIONS))
      for (const streamed of [false, true])
        it(`${client.name}, ${name}, ${streamed ? 'streamed' : 'whole'}`, async () => {
          sent.length = 0
          const asked = client.ask({ url, secret: 'key' }, { model: 'm', ...question }, { streamed })
          await assert.rejects(asked)
          const { path, body } = sent[0] ?? assert.fail('nothing was sent')
          const [, id = ''] = OPERATIONS.find(([pattern]) => pattern.test(path)) ?? assert.fail(path)
          const schema = requestSchemaOf(catalogue.find(id) ?? assert.fail(id))
          assert.equal(breachOf(body, schema), undefined, JSON.stringify(body))
          assert.equal(typeof breachOf({ ...body, fallbacks: ['other'] }, schema), 'string')
        })
})
