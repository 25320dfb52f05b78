/** Sends the same call twice with one idempotency key. It is executed and charged once. */
import { randomUUID } from 'node:crypto'
// In a project of your own: import { CompletedError, Farebox } from '@farebox/client'
import { CompletedError, Farebox } from '../client/src/index.ts'

const { FAREBOX_URL, FAREBOX_KEY } = process.env
if (!FAREBOX_URL || !FAREBOX_KEY) throw new Error('Set FAREBOX_URL and FAREBOX_KEY: npm run dev prints both.')

const farebox = new Farebox({ baseUrl: FAREBOX_URL, apiKey: FAREBOX_KEY })
const input = { query: 'a quick animal', documents: ['a snail', 'a fox', 'a stone'] }

// Take something that names what you want done, such as the id of an order, and store it before you call.
const idempotencyKey = `order-${randomUUID()}`

const first = await farebox.call('rerank', input, { idempotencyKey })
console.log(`first: ${first.data.results[0]?.document.text}, request ${first.requestId}`)
console.log(`cost: ${first.cost?.usd} USD`)

try {
  await farebox.call('rerank', input, { idempotencyKey })
  throw new Error('The second call was executed.')
} catch (error) {
  if (!(error instanceof CompletedError)) throw error
  // The answer is not stored. The refusal names the first call and what that cost.
  console.log(`second: ${error.code}, request ${error.requestId}, charged before: ${error.cost?.usd} USD`)
}

const { data: balance } = await farebox.balance()
console.log(`balance: ${balance.available?.usd} USD`)
