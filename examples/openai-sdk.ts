/** Streams a chat completion with OpenAI's SDK. The cost stands in the usage of the last chunk. */
import OpenAI from 'openai'

const { FAREBOX_URL, FAREBOX_KEY } = process.env
if (!FAREBOX_URL || !FAREBOX_KEY) throw new Error('Set FAREBOX_URL and FAREBOX_KEY: npm run dev prints both.')

const openai = new OpenAI({ baseURL: `${FAREBOX_URL}/v1`, apiKey: FAREBOX_KEY })
const stream = await openai.chat.completions.create({
  model: 'sandbox/echo',
  messages: [{ role: 'user', content: 'Hello from the OpenAI SDK' }],
  stream: true,
  stream_options: { include_usage: true },
})

/** The SDK passes the gateway's own member through, but its types do not know it. */
type Usage = OpenAI.CompletionUsage & { readonly cost_usd?: string }
let usage: Usage | null | undefined
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? '')
  usage = chunk.usage ?? usage
}
console.log(`\ntokens: ${usage?.prompt_tokens} in, ${usage?.completion_tokens} out`)
console.log(`cost: ${usage?.cost_usd} USD`)
