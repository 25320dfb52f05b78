import type { ServerResponse } from 'node:http'
import type { Outlet, OutletListener, StreamedAnswer } from '../gateway/relay.ts'
import { idHeaders, type RawReply } from './send-whole.ts'

/**
 * Sends an answer whose body is still coming. From here on the answer belongs to its body, and the framework has no part in it.
 * Resolves when its call has ended.
 */
export function sendStreamed(reply: RawReply, { status, headers, body }: StreamedAnswer): Promise<void> {
  const { raw: response, request } = reply
  // HTTP/1.0 knows no chunks: there, an answer ends with its connection.
  const isChunked = request.raw.httpVersion !== '1.0'
  try {
    response.writeHead(status, { ...idHeaders(request.id), ...framed(headers, isChunked) })
  } catch (error) {
    // The call has begun, and has to end also where the caller can't be told.
    body.sendTo(NOBODY)
    throw error
  }
  reply.hijack()
  response.flushHeaders()
  return body.sendTo(createOutlet(response, isChunked))
}

/** Only behind chunks there is room for trailers, and who announces them without is refused by Node. */
function framed(headers: Readonly<Record<string, string>>, isChunked: boolean): Readonly<Record<string, string>> {
  if (isChunked) return { ...headers, 'transfer-encoding': 'chunked' }
  const { trailer: _, ...rest } = headers
  return rest
}

/** A caller who has left. */
export const NOBODY: Outlet = {
  listen: ({ onLeft }) => onLeft(),
  hasLeft: () => true,
  write: () => true,
  end: () => {},
  breakOff: () => {},
}

function createOutlet(response: ServerResponse, isChunked: boolean): Outlet {
  const { socket } = response
  if (socket === null || response.destroyed) return NOBODY
  let listener: OutletListener | undefined
  let hasLeft = false
  let isOver = false
  const onRoom = () => listener?.onRoom()
  socket.on('drain', onRoom)
  response.once('close', () => {
    socket.off('drain', onRoom)
    if (isOver) return
    hasLeft = true
    listener?.onLeft()
  })

  return {
    listen(next) {
      listener = next
      if (hasLeft) listener.onLeft()
    },
    hasLeft: () => hasLeft,
    write(bytes) {
      if (bytes.length === 0 || isOver || !socket.writable) return true
      // The response would write the length, the bytes and the line end each by itself, at twice the price.
      return isChunked && bytes.length <= MOST_COPIED_BYTES ? socket.write(chunkOf(bytes)) : response.write(bytes)
    },
    end(bytes, trailers) {
      if (hasLeft) return
      isOver = true
      if (trailers !== undefined && isChunked) response.addTrailers(trailers)
      response.end(bytes)
    },
    breakOff(bytes) {
      if (isOver || hasLeft) return
      isOver = true
      const cut = () => response.destroy()
      // What was written before goes out first.
      if (socket.writable) response.write(bytes, cut)
      else cut()
    },
  }
}

const MOST_COPIED_BYTES = 4_095
const CR = 0x0d
const LF = 0x0a
const HEX = Buffer.from('0123456789abcdef')

/** A chunk of a body as it goes over the wire: its length, the bytes, and a line end behind each. */
function chunkOf(bytes: Buffer): Buffer {
  const { length } = bytes
  const start = length > 255 ? 5 : length > 15 ? 4 : 3
  const end = start + length
  const chunk = Buffer.allocUnsafe(end + 2)
  for (let at = start - 3, rest = length; at >= 0; at -= 1, rest >>= 4) chunk[at] = HEX[rest & 15] ?? 0
  chunk[start - 2] = CR
  chunk[start - 1] = LF
  chunk.set(bytes, start)
  chunk[end] = CR
  chunk[end + 1] = LF
  return chunk
}
