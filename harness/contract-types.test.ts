import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { typesOfContract } from './contract-types.ts'

const REFUSED = { not: {} }

/** A contract of one operation that is sold, with these members in its request. */
function typesWith(
  properties: Readonly<Record<string, unknown>>,
  more: Readonly<Record<string, unknown>> = {},
): string {
  const content = {
    'application/json': { schema: { type: 'object', properties, additionalProperties: false, ...more } },
  }
  const answer = { anyOf: [{ type: 'string' }, { $ref: '#/components/schemas/Quote' }] }
  const post = {
    operationId: 'sell',
    summary: 'Sell',
    parameters: [{ in: 'header', name: 'Idempotency-Key' }],
    requestBody: { required: true, content },
    responses: { 200: { content: { 'application/json': { schema: answer } } } },
  }
  const schemas = {
    Quote: { type: 'string' },
    Money: { type: 'string' },
    'a.b_c': { properties: { x: { type: 'integer' } } },
  }
  return typesOfContract({ paths: { '/v1/sell': { post } }, components: { schemas } }).replaceAll(/\s+/g, ' ')
}

describe('the types of a contract', () => {
  it('say what is required, what may be null, and what is one of a few', () => {
    const types = typesWith(
      { a: { type: 'integer' }, b: { type: 'string', nullable: true }, c: { enum: ['x', null], nullable: true } },
      { required: ['a'] },
    )
    assert.match(types, /\{ a: number b\?: string \| null c\?: 'x' \| null \}/)
  })

  it('refuse what is refused, and leave open what only some models refuse', () => {
    const types = typesWith({
      a: REFUSED,
      b: { ...REFUSED, description: 'Refused: unless the model has a price.' },
      c: {},
      d: { type: 'array', items: { anyOf: [REFUSED, { type: 'number' }] } },
    })
    assert.match(types, /a\?: never .* b\?: unknown c\?: unknown d\?: \(number\)\[\]/)
  })

  it('name what is referred to, and leave quotes out of answers', () => {
    const types = typesWith({ a: { allOf: [{ $ref: '#/components/schemas/a.b_c' }], type: 'object', nullable: true } })
    assert.match(types, /a\?: ABC \| null/)
    assert.match(types, /export type ABC = \{ x\?: number \}/)
    assert.match(types, /answer: string \}/)
    assert.match(types, /sell: 'POST \/v1\/sell'/)
  })

  it('take other members only where the contract does', () => {
    assert.doesNotMatch(typesWith({ a: {} }), /\[name: string\]: unknown/)
    assert.match(typesWith({ a: {} }, { additionalProperties: true }), /\[name: string\]: unknown/)
    assert.doesNotMatch(typesWith({ a: {} }, { additionalProperties: REFUSED }), /\[name: string\]: unknown/)
  })
})
