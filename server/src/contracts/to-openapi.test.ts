import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { toOpenapi } from './to-openapi.ts'

const converted = (schema: unknown) => toOpenapi(schema, (name) => name)

describe('a JSON Schema as OpenAPI 3.0.3 writes it', () => {
  for (const [what, schema, expected] of [
    ['has one type, and may be null', { type: ['string', 'null'] }, { type: 'string', nullable: true }],
    [
      'has several types as a choice',
      { type: ['string', 'array', 'null'] },
      {
        anyOf: [
          { type: 'string', nullable: true },
          { type: 'array', nullable: true, items: {} },
        ],
      },
    ],
    ['has no const', { const: 'a' }, { type: 'string', enum: ['a'] }],
    ['has null among its values', { enum: ['a', null] }, { type: 'string', nullable: true, enum: ['a', null] }],
    ['is null alone', { type: 'null' }, { type: 'string', nullable: true, enum: [null] }],
    [
      'has exclusive bounds by a flag',
      { type: 'integer', exclusiveMinimum: 0 },
      { type: 'integer', minimum: 0, exclusiveMinimum: true },
    ],
    ['refers to what stands elsewhere', { $ref: '#/$defs/a' }, { $ref: '#/components/schemas/a' }],
    [
      'says nothing beside a reference but with allOf',
      { $ref: '#/$defs/a', description: 'b' },
      { description: 'b', allOf: [{ $ref: '#/components/schemas/a' }] },
    ],
    ['takes anything', true, {}],
    ['takes nothing', false, { not: {} }],
    ['sorts what is required', { required: ['b', 'a'] }, { required: ['a', 'b'] }],
    ['is no choice where one of them takes anything', { anyOf: [true, { type: 'string' }] }, {}],
  ] as const)
    it(what, () => assert.deepEqual(converted(schema), expected))

  it('takes what the first one takes, and refuses what it refuses', () => {
    const ajv = new Ajv({ strict: false })
    const values = ['', 'a', 0, 1, -1, 0.5, true, null, [], [1], {}, { a: 1 }]
    for (const schema of [
      { type: ['string', 'null'] },
      { type: ['object', 'array'], items: { type: 'integer' }, properties: { a: { type: 'string' } } },
      { enum: ['a', 1, true, null] },
      { const: null },
      { anyOf: [{ type: 'null' }, { type: 'integer', minimum: 1 }] },
      { type: ['integer', 'null'], enum: [0, 1] },
    ]) {
      const [before, after] = [ajv.compile(schema), ajv.compile(converted(schema))]
      for (const value of values)
        if (before(value)) assert.ok(after(value), `${JSON.stringify(schema)} takes ${JSON.stringify(value)}`)
    }
    assert.throws(() => converted({ if: {} }), /no keyword if/)
  })
})
