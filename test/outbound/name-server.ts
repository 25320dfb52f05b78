import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { isIPv4 } from 'node:net'
import { after } from 'node:test'

const TYPES: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' }
const HEADER_BYTES = 12
const POINTER_TO_NAME = 0xc00c
const NXDOMAIN = 3

/** A name server on this machine, over UDP: says for a name what `answer` does, undefined being that there is no such name. */
export async function startNameServer(answer: (name: string, type: 'A' | 'AAAA') => readonly string[] | undefined) {
  const asked: string[] = []
  const socket = createSocket('udp4', (query: Buffer, from: RemoteInfo) => {
    const { name, end } = nameIn(query)
    const type = TYPES[query.readUInt16BE(end)] ?? 'A'
    asked.push(`${type} ${name}`)
    socket.send(replyTo(query.subarray(0, end + 4), answer(name, type)), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  after(() => socket.close())
  return { server: `127.0.0.1:${socket.address().port}`, asked }
}

function nameIn(query: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}

function replyTo(question: Buffer, addresses: readonly string[] | undefined): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(0x8180 | (addresses === undefined ? NXDOMAIN : 0), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(addresses?.length ?? 0, 6)
  head.writeUInt32BE(0, 8)
  return Buffer.concat([head, ...(addresses ?? []).map(recordOf)])
}

function recordOf(address: string): Buffer {
  const data = isIPv4(address) ? Buffer.from(address.split('.').map(Number)) : bytesOfSix(address)
  const record = Buffer.alloc(HEADER_BYTES)
  record.writeUInt16BE(POINTER_TO_NAME, 0)
  record.writeUInt16BE(isIPv4(address) ? 1 : 28, 2)
  record.writeUInt16BE(1, 4)
  record.writeUInt16BE(data.length, 10)
  return Buffer.concat([record, data])
}

function bytesOfSix(address: string): Buffer {
  const [left = '', right = ''] = address.split('::')
  const groups = (part: string) => (part === '' ? [] : part.split(':'))
  const missing = 8 - groups(left).length - groups(right).length
  const all = [...groups(left), ...Array.from({ length: missing }, () => '0'), ...groups(right)]
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex')
}
