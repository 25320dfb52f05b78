import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalogue } from '../../catalogue/catalogue.ts'
import { openLibrary } from '../guides/library.ts'
import { createSiteIndex } from './site-index.ts'

const named = (id: string) => ({ id, displayName: `Name of ${id}` })

/** The guides as they are, and how often one was read. */
function createCounted() {
  const counts = { rendered: 0 }
  const { guides } = openLibrary()
  const counted = guides.map((guide) => ({
    ...guide,
    rendered() {
      counts.rendered += 1
      return guide.rendered()
    },
  }))
  return { counts, guides: counted }
}

describe('the index of the website', () => {
  it('is read in many turns, so that calls of the same process have theirs', async () => {
    const { guides } = openLibrary()
    const search = createSiteIndex({ guides, operations: () => catalogue.operations, models: () => [] })
    let turns = 0
    let isDone = false
    const count = () => {
      turns += 1
      if (!isDone) setImmediate(count)
    }
    setImmediate(count)
    assert.ok((await search('hold')).length > 0)
    isDone = true
    const letters = guides.flatMap(({ rendered }) => rendered().parts).reduce((sum, { text }) => sum + text.length, 0)
    assert.ok(turns > letters / 30_000, `${turns} turns for ${letters} characters`)
  })

  it('finds what callers read before what operators do', async () => {
    const { guides } = openLibrary()
    const search = createSiteIndex({ guides, operations: () => catalogue.operations, models: () => [] })
    for (const query of ['key', 'rotate', 'budget', 'price of a model']) {
      const found = await search(query)
      const places = found.flatMap(({ isForOperators }, at) => (isForOperators === true ? [at] : []))
      assert.ok(places.length > 0, query)
      assert.equal(places[0], found.length - places.length, query)
    }
  })

  it('reads guides once, whatever becomes of models, and models again when their names have changed', async () => {
    const { counts, guides } = createCounted()
    let models = [named('lab/first')]
    const search = createSiteIndex({ guides, operations: () => catalogue.operations, models: () => models })
    const found = async (query: string) =>
      (await search(query)).filter(({ kind }) => kind === 'models').map(({ title }) => title)
    assert.deepEqual(await found('lab'), ['lab/first'])
    models = [named('lab/first')]
    assert.deepEqual(await found('lab'), ['lab/first'])
    models = [named('lab/first'), named('lab/second')]
    assert.deepEqual((await found('lab')).toSorted(), ['lab/first', 'lab/second'])
    models = [named('lab/second')]
    assert.deepEqual(await found('lab'), ['lab/second'])
    models = [{ id: 'lab/second', displayName: 'Heron' }]
    assert.deepEqual(await found('heron'), ['lab/second'])
    assert.equal(counts.rendered, guides.length)
  })

  it('knows where each word of a guide stands first, so that no request reads the guide for it', async () => {
    const { guides } = openLibrary()
    const search = createSiteIndex({ guides, operations: () => catalogue.operations, models: () => [] })
    const long = (await search('settles')).find(({ kind, text }) => kind === 'guides' && text.length > 1_000)
    assert.ok(long !== undefined)
    assert.match(long.text.slice(long.places?.get('settl')), /^settl/i)
  })
})
