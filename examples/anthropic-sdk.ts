/** Streams a message with Anthropic's SDK. The cost stands in the usage of the last event that has one. */
import Anthropic from '@anthropic-ai/sdk'

const { FAREBOX_URL, FAREBOX_KEY } = process.env
if (!FAREBOX_URL || !FAREBOX_KEY) throw new Error('Set FAREBOX_URL and FAREBOX_KEY: npm run dev prints both.')

// Without /v1: this SDK adds it.
const anthropic = new Anthropic({ baseURL: FAREBOX_URL, apiKey: FAREBOX_KEY })
const stream = await anthropic.messages.create({
  model: 'sandbox/echo',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello from the Anthropic SDK' }],
  stream: true,
})

/** The SDK passes the gateway's own member through, but its types do not know it. */
type Usage = Anthropic.MessageDeltaUsage & { readonly cost_usd?: string }
let inputTokens = 0
let usage: Usage | undefined
for await (const event of stream) {
  if (event.type === 'message_start') inputTokens = event.message.usage.input_tokens
  if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') process.stdout.write(event.delta.text)
  if (event.type === 'message_delta') usage = event.usage
}
console.log(`\ntokens: ${usage?.input_tokens ?? inputTokens} in, ${usage?.output_tokens} out`)
console.log(`cost: ${usage?.cost_usd} USD`)
