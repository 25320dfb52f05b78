import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { diffContracts, refusalToFollow } from './diff.ts'

type Members = Readonly<Record<string, unknown>>

/** A contract of one operation. */
function contract({
  request = {},
  response = {},
  operation = {},
  version = '1.0.0',
}: Record<string, unknown> & { version?: string }) {
  return {
    openapi: '3.0.3',
    info: { version },
    paths: {
      '/v1/things': {
        post: {
          operationId: 'things',
          parameters: [{ in: 'query', name: 'a', schema: { type: 'integer', minimum: 1 } }],
          requestBody: { required: true, content: { 'application/json': { schema: request } } },
          responses: {
            200: {
              headers: { A: {} },
              content: { 'application/json': { schema: { $ref: '#/components/schemas/R' } } },
            },
          },
          ...Object(operation),
        },
      },
    },
    components: { schemas: { R: response } },
  }
}

const kinds = (before: Members, after: Members) => [...new Set(diffContracts(before, after).map(({ kind }) => kind))]
const object = (properties: Members, required: readonly string[] = []) => ({ type: 'object', properties, required })
const STRING = { type: 'string' }

/** What becomes of a schema, and what that is to whoever sends it and to whoever reads it. */
const CASES: readonly (readonly [what: string, before: unknown, after: unknown, request: string, response: string])[] =
  [
    ['a new optional member', object({}), object({ a: STRING }), 'additive', 'additive'],
    ['a member that is gone', object({ a: STRING }), object({}), 'breaking', 'breaking'],
    ['a member that is required', object({ a: STRING }), object({ a: STRING }, ['a']), 'breaking', 'additive'],
    ['a member that may be left out', object({ a: STRING }, ['a']), object({ a: STRING }), 'additive', 'breaking'],
    ['another type', STRING, { type: 'boolean' }, 'breaking', 'breaking'],
    ['integers that become numbers', { type: 'integer' }, { type: 'number' }, 'additive', 'breaking'],
    ['numbers that become integers', { type: 'number' }, { type: 'integer' }, 'breaking', 'additive'],
    ['null', STRING, { ...STRING, nullable: true }, 'additive', 'breaking'],
    ['a further value', { ...STRING, enum: ['a'] }, { ...STRING, enum: ['a', 'b'] }, 'additive', 'breaking'],
    ['a value less', { ...STRING, enum: ['a', 'b'] }, { ...STRING, enum: ['a'] }, 'breaking', 'additive'],
    ['a lower maximum', { maximum: 9 }, { maximum: 8 }, 'breaking', 'additive'],
    ['a higher maximum', { maximum: 9 }, { maximum: 10 }, 'additive', 'breaking'],
    ['a first minimum', {}, { minimum: 0 }, 'breaking', 'additive'],
    ['no minimum any more', { minLength: 1 }, {}, 'additive', 'breaking'],
    ['another pattern', { pattern: 'a' }, { pattern: 'b' }, 'breaking', 'breaking'],
    ['a member that is refused', object({ a: STRING }), object({ a: { not: {} } }), 'breaking', 'additive'],
    ['a new name that is refused', object({}), object({ a: { not: {} } }), 'breaking', 'additive'],
    [
      'another of items',
      { type: 'array', items: STRING },
      { type: 'array', items: { type: 'integer' } },
      'breaking',
      'breaking',
    ],
    ['no others', { additionalProperties: true }, { additionalProperties: false }, 'breaking', 'additive'],
    ['one choice more', { anyOf: [STRING] }, { anyOf: [STRING, { type: 'integer' }] }, 'additive', 'breaking'],
    ['one choice less', { anyOf: [STRING, { type: 'integer' }] }, { anyOf: [STRING] }, 'breaking', 'additive'],
    ['one condition more', { allOf: [STRING] }, { allOf: [STRING, { minLength: 1 }] }, 'breaking', 'additive'],
  ]

describe('what changed between two contracts', () => {
  for (const [what, before, after, request, response] of CASES)
    it(`is told by who meets it: ${what}`, () => {
      assert.deepEqual(kinds(contract({ request: before }), contract({ request: after })), [request])
      assert.deepEqual(kinds(contract({ response: before }), contract({ response: after })), [response])
    })

  it('is breaking where an operation, a status, a header or a parameter is gone, or one is required', () => {
    const none = { ...contract({}), paths: {} }
    assert.deepEqual(kinds(contract({}), none), ['breaking'])
    assert.deepEqual(kinds(none, contract({})), ['additive'])
    const of = (operation: Members) => kinds(contract({}), contract({ operation }))
    assert.deepEqual(of({ parameters: [] }), ['breaking'])
    const A = { in: 'query', name: 'a', schema: { type: 'integer', minimum: 1 } }
    assert.deepEqual(of({ parameters: [{ ...A, required: true }] }), ['breaking'])
    assert.deepEqual(of({ parameters: [A, { in: 'query', name: 'b', schema: {} }] }), ['additive'])
    assert.deepEqual(of({ parameters: [A, { in: 'query', name: 'b', required: true, schema: {} }] }), ['breaking'])
    assert.deepEqual(of({ operationId: 'other' }), ['breaking'])
    assert.deepEqual(of({ security: [] }), ['breaking'])
    assert.deepEqual(of({ requestBody: undefined }), ['breaking'])
    const [{ responses }] = Object.values(contract({}).paths).map(({ post }) => post) as [{ responses: Members }]
    assert.deepEqual(of({ responses: { ...responses, 404: {} } }), ['additive'])
    assert.deepEqual(of({ responses: { ...responses, 202: {} } }), ['breaking'])
    assert.deepEqual(of({ responses: {} }), ['breaking'])
    assert.deepEqual(of({ responses: { 200: { ...Object(responses[200]), headers: {} } } }), ['breaking'])
    assert.deepEqual(of({ responses: { 200: { ...Object(responses[200]), content: {} } } }), ['additive'])
  })

  it('is nothing where only words differ, or where a schema holds itself', () => {
    const self = (description: string) =>
      contract({ response: { ...object({ a: { $ref: '#/components/schemas/R' } }), description } })
    assert.deepEqual(diffContracts(self('a'), self('b')), [])
    assert.deepEqual(
      diffContracts(contract({ operation: { summary: 'a' } }), contract({ operation: { summary: 'b' } })),
      [],
    )
  })

  it('may break callers only under another first number', () => {
    const broken = (version: string) => contract({ request: object({ a: STRING }, ['a']), version })
    const before = contract({ request: object({ a: STRING }) })
    assert.match(refusalToFollow(before, broken('1.9.0')) ?? '', /POST \/v1\/things body\.a is always there now/)
    assert.equal(refusalToFollow(before, broken('2.0.0')), undefined)
    assert.equal(refusalToFollow(before, contract({ request: object({ a: STRING, b: STRING }) })), undefined)
  })
})
