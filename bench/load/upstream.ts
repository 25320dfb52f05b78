import { createServer, type Socket } from 'node:net'

/**
 * An upstream that costs next to nothing: it knows its answers by heart. A request with "stream":true gets as many events as it
 * takes tokens, each written by itself, one every few milliseconds: of 64 bytes in a chat, and in Responses with all that this
 * protocol has around a word. Every other gets a completion of a kilobyte.
 */
const EVERY_MS = Number(process.argv[2] ?? 5)
const MOST_TOKENS = /"max_(?:output_)?tokens":(\d+)/
const CRLF2 = Buffer.from('\r\n\r\n')
const STREAMED = Buffer.from('"stream":true')
const RESPONSES = Buffer.from('POST /v1/responses ')

const completion = JSON.stringify({
  id: 'chatcmpl-0123456789abcdef',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'upstream-model',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'The quick brown fox jumps over the lazy dog. '.repeat(15),
        refusal: null,
      },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 180, completion_tokens: 150, total_tokens: 330 },
})
const whole = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(completion)}\r\nConnection: keep-alive\r\n\r\n${completion}`,
)
const head = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n',
)

function chunk(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}

/** Where a word is in an answer of Responses. */
const PLACE = { item_id: 'msg_0123456789abcdef', output_index: 0, content_index: 0 }

type Script = {
  readonly beginning: readonly Buffer[]
  readonly event: Buffer
  readonly endingOf: (events: number) => readonly Buffer[]
}

/** An event has 64 bytes with the blank line that ends it. */
const chat: Script = {
  beginning: [],
  event: chunk('data: {"choices":[{"index":0,"delta":{"content":"a word, "}}]}\n\n'),
  endingOf: (events) => [
    chunk('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
    chunk(`data: {"choices":[],"usage":{"prompt_tokens":180,"completion_tokens":${events}}}\n\n`),
    chunk('data: [DONE]\n\n'),
    Buffer.from('0\r\n\r\n'),
  ],
}

const responses: Script = {
  beginning: [
    named('response.created', { response: responseOf('in_progress', []) }),
    named('response.output_item.added', { output_index: 0, item: messageOf('in_progress', []) }),
    named('response.content_part.added', { ...PLACE, part: { type: 'output_text', annotations: [], text: '' } }),
  ],
  event: named('response.output_text.delta', { ...PLACE, delta: 'a word, ' }),
  endingOf(events) {
    const text = 'a word, '.repeat(events)
    const part = { type: 'output_text', annotations: [], text }
    const item = messageOf('completed', [part])
    const usage = { input_tokens: 180, output_tokens: events, total_tokens: 180 + events }
    return [
      named('response.output_text.done', { ...PLACE, text }),
      named('response.content_part.done', { ...PLACE, part }),
      named('response.output_item.done', { output_index: 0, item }),
      named('response.completed', { response: { ...responseOf('completed', [item]), usage } }),
      Buffer.from('0\r\n\r\n'),
    ]
  },
}

type Stream = { readonly event: Buffer; readonly ending: readonly Buffer[]; left: number }

function named(type: string, members: object): Buffer {
  return chunk(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 4, ...members })}\n\n`)
}

function responseOf(status: string, output: readonly object[]): object {
  return { id: 'resp_0123456789abcdef', object: 'response', status, model: 'upstream-model', output, usage: null }
}

function messageOf(status: string, content: readonly object[]): object {
  return { id: PLACE.item_id, type: 'message', status, role: 'assistant', content }
}

/** Streams by the millisecond at which they get their next event, so that they do not all get it at once. */
const phases: Map<Socket, Stream>[] = Array.from({ length: EVERY_MS }, () => new Map())
let now = 0
let opened = 0

function startStream(socket: Socket, { beginning, event, endingOf }: Script, events: number): void {
  socket.write(head)
  for (const piece of beginning) socket.write(piece)
  phases[opened % EVERY_MS]?.set(socket, { event, ending: endingOf(events), left: events })
  opened += 1
}

function tick(): void {
  const phase = phases[now % EVERY_MS]
  now += 1
  for (const [socket, stream] of phase ?? []) {
    if (stream.left > 0) {
      socket.write(stream.event)
      stream.left -= 1
    } else {
      phase?.delete(socket)
      for (const piece of stream.ending) socket.write(piece)
    }
  }
}

const server = createServer({ noDelay: true }, (socket) => {
  let kept: Buffer = Buffer.alloc(0)
  socket.on('error', () => {})
  socket.on('close', () => {
    for (const phase of phases) phase.delete(socket)
  })
  socket.on('data', (piece) => {
    kept = kept.length === 0 ? piece : Buffer.concat([kept, piece])
    const end = kept.indexOf(CRLF2)
    if (end === -1) return
    const length = Number(/content-length: (\d+)/i.exec(kept.toString('latin1', 0, end))?.[1] ?? 0)
    if (kept.length < end + CRLF2.length + length) return
    if (!kept.includes(STREAMED)) socket.write(whole)
    else {
      const script = kept.indexOf(RESPONSES) === 0 ? responses : chat
      startStream(socket, script, Number(MOST_TOKENS.exec(kept.toString('latin1', end))?.[1]))
    }
    kept = Buffer.alloc(0)
  })
})

const startedMs = performance.now()
setInterval(() => {
  // A late timer catches up: the pace of a stream does not depend on how busy the machine is.
  while (now < performance.now() - startedMs) tick()
}, 1)

server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  process.stdout.write(`${JSON.stringify({ ready: true, port })}\n`)
})
