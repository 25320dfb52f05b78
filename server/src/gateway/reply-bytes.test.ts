import assert from 'node:assert/strict'
import { it } from 'node:test'
import { REPLY_MOST_BYTES } from '../kernel/memory-budget.ts'
import { replyBytesOf } from './reply-bytes.ts'

it('reserves little for a stream, and all of its text where its request is large already', () => {
  assert.deepEqual(replyBytesOf({ isStream: true }, 4_096), { replyBytes: 65_536, replyMostBytes: 131_072 })
  assert.deepEqual(replyBytesOf({ isStream: true }, 1_000_000), { replyBytes: 65_536, replyMostBytes: 1_114_112 })
})

it('reserves for a whole reply all that it can have by what is asked for', () => {
  for (const [ask, outputMost, bytes] of [
    [{ isStream: false }, 4_096, 98_304],
    [{ isStream: false, replyBytes: 5_000_000 }, 0, 5_032_768],
    [{ isStream: false }, 100_000_000, REPLY_MOST_BYTES],
    [{ isStream: false, repeatedBytes: 900_000 }, 4_096, 998_304],
  ] as const)
    assert.deepEqual(replyBytesOf(ask, outputMost), { replyBytes: bytes, replyMostBytes: bytes })
})

it('reserves what a stream repeats of its request, which comes first and once more with all of its text', () => {
  const ask = { isStream: true, repeatedBytes: 900_000 }
  assert.deepEqual(replyBytesOf(ask, 4_096), { replyBytes: 965_536, replyMostBytes: 965_536 + 2 * 65_536 })
})
