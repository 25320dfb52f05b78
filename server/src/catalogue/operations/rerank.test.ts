import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { rerank } from './rerank.ts'

const count = async (text: string) => (text.match(/\S+/g) ?? []).length
const counted = (members: object) =>
  rerank.price.counted?.(rerank.input.parse({ query: 'a b', documents: ['c', 'd', 'e f'], ...members }), count)

describe('what a reranking has read, where nobody reports it', () => {
  it('is the query and the instruction once with each document', async () => {
    assert.equal((await counted({}))?.units, 10n)
    assert.equal((await counted({ instruction: null }))?.units, 10n)
    assert.equal((await counted({ instruction: 'be very strict' }))?.units, 19n)
  })

  it('has no chunks, with each of which the query would be read', () => {
    const { error } = rerank.input.safeParse({ query: 'a', documents: ['b'], max_chunks_per_doc: 100 })
    assert.match(String(error), /max_chunks_per_doc.* is not supported/)
  })
})
