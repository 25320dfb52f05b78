import type { IncomingMessage } from 'node:http'
import { networkKey } from '../people/attempts.ts'
import { type Visitor, visitorOf } from '../people/visitor.ts'

/** What belongs to a request that is handed to the library, which knows nothing of it. */
const visitors = new WeakMap<IncomingMessage, Visitor>()
const browsers = new WeakMap<IncomingMessage, string>()
const shards = new WeakMap<IncomingMessage, number>()

export function rememberVisitor(request: IncomingMessage, visitor: Visitor): void {
  visitors.set(request, visitor)
}

export function visitorOfRequest(request: IncomingMessage | undefined): Visitor {
  return (request === undefined ? undefined : visitors.get(request)) ?? visitorOf('')
}

export function networkOfRequest(request: IncomingMessage | undefined): Buffer {
  return networkKey(visitorOfRequest(request))
}

/** From which browser it is, as a hash of what that has of us. */
export function rememberBrowser(request: IncomingMessage, mark: string): void {
  browsers.set(request, mark)
}

export function browserOfRequest(request: IncomingMessage | undefined): string | undefined {
  return request === undefined ? undefined : browsers.get(request)
}

/** In which cell the grant of this request is. */
export function rememberShard(request: IncomingMessage | undefined, shard: number): void {
  if (request !== undefined) shards.set(request, shard)
}

export function shardOfRequest(request: IncomingMessage | undefined): number {
  const shard = request === undefined ? undefined : shards.get(request)
  if (shard === undefined) throw new Error('a token is issued without its grant')
  return shard
}
