import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalogue } from '../catalogue/catalogue.ts'
import { allowsModel, allowsOperation, checkScopes, LINKING, mayAllowModel, scopesIn } from './scopes.ts'

const known = { operations: catalogue.operations, models: ['maker/one', 'maker/two', 'tag_detail'] }
const allowed = (...texts: readonly string[]) =>
  catalogue.operations.filter((operation) => allowsOperation(scopesIn(texts), operation)).map(({ id }) => id)
const ofCategory = (one: string) => catalogue.operations.filter(({ category }) => category === one).map(({ id }) => id)

describe('scopes', () => {
  it('by an operation allow that one', () => {
    for (const { id } of catalogue.operations) assert.ok(allowed(id).includes(id))
    assert.deepEqual(allowed('tag_detail'), ['tag_detail'])
  })

  it('by a category allow those of it, and linking an account with those that act for its user', () => {
    for (const category of ['models', 'video', 'social', 'finance', 'traffic'])
      assert.deepEqual(allowed(category), ofCategory(category))
    const linking = { ...LINKING, limits: [] }
    assert.ok(allowsOperation(scopesIn(['social']), linking) && allowsOperation(scopesIn(['auth_link']), linking))
    assert.ok(!allowsOperation(scopesIn(['models', 'follow_user']), linking))
  })

  it('by a limit group allow those that share its limit', () => {
    assert.deepEqual(allowed('generate_content'), ['generate_content', 'stream_generate_content'])
  })

  it('by a model allow that model and no operation as such', () => {
    const scopes = scopesIn(['model:maker/one', 'model:tag_detail'])
    assert.deepEqual(allowed('model:maker/one', 'model:tag_detail'), [])
    assert.ok(allowsModel(scopes, 'maker/one') && !allowsModel(scopes, 'maker/two') && !allowsModel(scopes, undefined))
    const maybe = catalogue.operations.filter((operation) => mayAllowModel(scopes, operation)).map(({ id }) => id)
    assert.deepEqual(maybe.toSorted(), [...ofCategory('models'), ...ofCategory('video')].toSorted())
    assert.ok(!catalogue.operations.some((operation) => mayAllowModel(scopesIn(['rerank']), operation)))
  })

  it('add up', () => {
    assert.deepEqual(allowed('finance', 'rerank').toSorted(), [...ofCategory('finance'), 'rerank'].toSorted())
  })
})

describe('scopes that a key is to have', () => {
  it('are taken where all of them are known, each once', () => {
    const given = ['rerank', 'social', 'images', 'auth_link', 'model:maker/one', 'rerank']
    assert.deepEqual(checkScopes(given, known), given.slice(0, -1))
  })

  for (const [text, says] of [
    [
      'rerankk',
      /^"rerankk" is not a scope: did you mean rerank\? There are the categories models, video, .*; the operations .*tag_detail.*; and model:<name>/,
    ],
    ['Social', /did you mean social\?/],
    ['zzz', /^"zzz" is not a scope\. There are/],
    ['maker/one', /did you mean model:maker\/one\?/],
    ['model:maker/on', /^"model:maker\/on" is not a model: did you mean model:maker\/one\? See farebox models list$/],
    ['model:', /is not a model\. See farebox/],
    ['model: maker/one', /is not a model/],
    ['*', /is not a scope/],
    ['__proto__', /is not a scope/],
    ['constructor', /is not a scope/],
    ['x'.repeat(10_000), /^"x{60}" is not a scope/],
  ] as const)
    it(`are refused with ${JSON.stringify(text.slice(0, 20))}, beside known ones too`, () => {
      for (const texts of [[text], ['rerank', text]])
        assert.throws(
          () => checkScopes(texts, known),
          (error) => error instanceof RangeError && says.test(error.message),
        )
    })

  it('are not none, and not more than a hundred', () => {
    assert.throws(() => checkScopes([], known), /needs at least one scope/)
    assert.throws(() => checkScopes(Array(101).fill('rerank'), known), /at most 100 scopes, and you named 101/)
  })
})
