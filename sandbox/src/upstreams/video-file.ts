import { hashOf, Random } from '../random.ts'
import type { Asked } from '../upstream.ts'
import type { VideoTask } from './video-task.ts'

/** The addresses of videos are signed, so that the files themselves need no memory. */

const FILE = /^\/files\/([^/]+)\.mp4$/
/** A box that says which kind of file this is, as every such file begins. */
const FILE_TYPE = Buffer.from('\u0000\u0000\u0000\u0018ftypisom\u0000\u0000\u0002\u0000isommp41', 'latin1')

export function isFile(path: string): boolean {
  return FILE.test(path)
}

/** On the host that the caller has asked, so that it holds behind a proxy too. */
export function addressOf({ id, course }: VideoTask, endedAtMs: number, { headers, seed }: Asked): string {
  const expires = String(Math.floor(endedAtMs / 1000) + course.urlSeconds)
  const query = new URLSearchParams({ Expires: expires, Signature: signatureOf(id, expires, seed) })
  return `http://${headers.host}/video/files/${id}.mp4?${query}`
}

/** The file at an address, or why it is not given out. */
export function fileAt({ path, parameters, seed, nowMs }: Asked): Buffer | 'expired' | 'forged' {
  const id = FILE.exec(path)?.[1] ?? ''
  const expires = parameters.get('Expires') ?? ''
  if (parameters.get('Signature') !== signatureOf(id, expires, seed)) return 'forged'
  return nowMs < Number(expires) * 1000 ? Buffer.concat([FILE_TYPE, dataOf(id)]) : 'expired'
}

function signatureOf(id: string, expires: string, seed: number): string {
  return new Random(hashOf(seed, 'file of a video', id, expires)).hex(32)
}

function dataOf(id: string): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(id.length + 8)
  return Buffer.concat([length, Buffer.from(`mdat${id}`)])
}
