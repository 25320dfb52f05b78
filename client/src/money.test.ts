import assert from 'node:assert/strict'
import { it } from 'node:test'
import { readUsd, sumUsd, Usd } from './money.ts'

it('reads amounts exactly, and nothing else', () => {
  const cases = { '0.001450000': 1_450_000n, '12': 12_000_000_000n, '-0.5': -500_000_000n, '0.000000001': 1n }
  for (const [text, nanos] of Object.entries(cases)) assert.equal(readUsd(text)?.nanos, nanos, text)
  assert.equal(readUsd('99999999999999.999999999')?.usd, '99999999999999.999999999')
  for (const text of ['', '1e3', '.5', '1.', '1,5', '0.0000000001', 'NaN', '+1', ' 1', null, undefined])
    assert.equal(readUsd(text), undefined, String(text))
})

it('adds up without rounding, and prints as text', () => {
  const sum = sumUsd([readUsd('0.1') ?? null, readUsd('0.2') ?? null, null])
  assert.deepEqual([sum.usd, JSON.stringify({ sum })], ['0.300000000', '{"sum":"0.300000000"}'])
  assert.equal(new Usd(-1n).usd, '-0.000000001')
})
