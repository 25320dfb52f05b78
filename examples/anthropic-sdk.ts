/** Asks for a whole message with Anthropic's SDK. The cost stands in a header of the answer. */
import Anthropic from '@anthropic-ai/sdk'

const { FAREBOX_URL, FAREBOX_KEY } = process.env
if (!FAREBOX_URL || !FAREBOX_KEY) throw new Error('Set FAREBOX_URL and FAREBOX_KEY: npm run dev prints both.')

// Without /v1: this SDK adds it.
const anthropic = new Anthropic({ baseURL: FAREBOX_URL, apiKey: FAREBOX_KEY })
const { data: message, response } = await anthropic.messages
  .create({
    model: 'sandbox/echo',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hello from the Anthropic SDK' }],
  })
  .withResponse()

for (const block of message.content) if (block.type === 'text') console.log(block.text)
console.log(`tokens: ${message.usage.input_tokens} in, ${message.usage.output_tokens} out`)
console.log(`cost: ${response.headers.get('x-farebox-cost-usd')} USD`)
console.log(`balance: ${response.headers.get('x-farebox-balance-usd')} USD`)
