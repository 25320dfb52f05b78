import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { embeddingsFor } from '../../sandbox/src/upstreams/models/openai-embeddings.ts'

/**
 * An upstream that gives the sandbox's vectors, made once: as many inputs and numbers as its arguments say. To make 54 MiB of
 * them for each call would take the machine that is measured.
 */
const [inputs = 1, dimensions = 8] = process.argv.slice(2).map(Number)
const asked = { body: { model: 'vectors', input: Array.from({ length: inputs }, () => 'a'), dimensions }, seed: 1 }
const made = embeddingsFor(asked)
if ('wrong' in made) throw new Error(made.wrong)
const reply = Buffer.from(JSON.stringify({ ...made.body({}), usage: made.usage(made.inputTokens, 0) }))

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': reply.length }).end(reply)
  })
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, bytes: reply.length, tokens: made.inputTokens }))
})
