/** Streams content with Google's SDK. The cost stands in the usage of the last chunk. */
import { type GenerateContentResponseUsageMetadata, GoogleGenAI } from '@google/genai'

const { FAREBOX_URL, FAREBOX_KEY } = process.env
if (!FAREBOX_URL || !FAREBOX_KEY) throw new Error('Set FAREBOX_URL and FAREBOX_KEY: npm run dev prints both.')

const google = new GoogleGenAI({ apiKey: FAREBOX_KEY, httpOptions: { baseUrl: FAREBOX_URL } })
const stream = await google.models.generateContentStream({
  model: 'sandbox/echo',
  contents: 'Hello from the Google SDK',
  config: { maxOutputTokens: 100 },
})

/** The SDK passes the gateway's own member through, but its types do not know it. */
type Usage = GenerateContentResponseUsageMetadata & { readonly cost_usd?: string }
let usage: Usage | undefined
for await (const chunk of stream) {
  process.stdout.write(chunk.text ?? '')
  usage = chunk.usageMetadata ?? usage
}
console.log(`\ntokens: ${usage?.promptTokenCount} in, ${usage?.candidatesTokenCount} out`)
console.log(`cost: ${usage?.cost_usd} USD`)
