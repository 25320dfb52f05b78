import type { Endpoint } from './endpoints.ts'
import type { Request, Stack } from './stack.ts'

/** Conversations with models in each protocol: how they are asked, and how their answers are read. */
type Json = Record<string, unknown>

export const NO_MORE_THAN = 400

/** A conversation in a protocol, with a text for the model and the most that it may answer. */
export function saying(
  endpoint: Endpoint,
  model: string,
  text: string,
  most: number | undefined = NO_MORE_THAN,
): Request {
  switch (endpoint.operation) {
    case 'generate_content':
      return {
        path: `/v1beta/models/${model}:generateContent`,
        body: {
          contents: [{ role: 'user', parts: [{ text }] }],
          ...(most !== undefined && { generationConfig: { maxOutputTokens: most } }),
        },
      }
    case 'responses':
      return { path: endpoint.path, body: { model, input: text, max_output_tokens: most } }
    default:
      return { path: endpoint.path, body: { model, messages: [{ role: 'user', content: text }], max_tokens: most } }
  }
}

/** The same as a stream. */
export function streamed({ path, body }: Request): Request {
  return path.includes(':generateContent')
    ? { path: path.replace(':generateContent', ':streamGenerateContent?alt=sse'), body }
    : { path, body: { ...Object(body), stream: true } }
}

/** The data of the events of a stream. */
export function framesOf(text: string): readonly Json[] {
  return text
    .split(/\r?\n\r?\n/)
    .flatMap((event) => /^data: ?(\{.*)$/m.exec(event)?.[1] ?? [])
    .map((data) => Object(JSON.parse(data)))
}

export function textIn(frames: readonly Json[]): string {
  return frames
    .map((frame) => {
      const [choice] = [frame.choices].flat().map(Object)
      const [candidate] = [frame.candidates].flat().map(Object)
      const parts = [Object(candidate?.content).parts].flat().map(Object)
      if (frame.type === 'response.output_text.delta') return frame.delta
      return Object(choice?.delta).content ?? Object(frame.delta).text ?? parts[0]?.text ?? ''
    })
    .join('')
}

export function answerIn({ choices, candidates, content, output }: Json): string {
  const [choice] = [choices].flat().map(Object)
  const [candidate] = [candidates].flat().map(Object)
  if (choice?.message) return choice.message.content
  if (candidate?.content) return candidate.content.parts[0].text
  if (content !== undefined) return Object([content].flat()[0]).text
  const message = [output]
    .flat()
    .map(Object)
    .find(({ type }) => type === 'message')
  return Object([message?.content].flat()[0]).text
}

/** Tokens as each protocol reports them, in and out. */
export function tokensIn({ usage, usageMetadata }: Json): readonly [number, number] {
  const { prompt_tokens, completion_tokens, input_tokens, output_tokens } = Object(usage)
  const { promptTokenCount, candidatesTokenCount } = Object(usageMetadata)
  return [prompt_tokens ?? input_tokens ?? promptTokenCount, completion_tokens ?? output_tokens ?? candidatesTokenCount]
}

/** A stream to where it ends, also where its connection ends before it: such a one had an error. */
export async function broken(stack: Stack, secret: string, { path, body }: Request) {
  const response = await fetch(stack.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const pieces: Uint8Array[] = []
  try {
    for await (const piece of response.body ?? []) pieces.push(piece)
  } catch {}
  const text = Buffer.concat(pieces).toString()
  return { status: response.status, id: response.headers.get('x-request-id') ?? '', text }
}

export const costsIn = (text: string) => [...text.matchAll(/"cost_usd":"([\d.]+)"/g)].map(([, cost]) => cost)

/** At the prices of the sandbox's models: 0.50 and 2.00 USD for a million. */
export function priceOf([input, output]: readonly [number, number]): bigint {
  return BigInt(input) * 500n + BigInt(output) * 2_000n
}
