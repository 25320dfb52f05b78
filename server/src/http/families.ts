import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../identity/caller.ts'
import { type FamilyName, isUnder, SHARED_PREFIX } from '../wire/family.ts'

/** Routes under one path that speak one protocol. */
export type Family = FamilyName & {
  /** What its routes take as a body; JSON where left out. */
  readonly bodies?: 'json' | 'form'
  /** The most that such a body may have, where it is less than what the listener takes. */
  readonly bodyBytes?: number
  /** Declares the routes; their paths are relative to the prefix. */
  readonly register: (scope: FastifyInstance, listener: ListenerState) => void | Promise<void>
}

/** What a route that takes long asks of its listener on the way. */
export type ListenerState = {
  /** Who calls, as it is known now: a key may have been revoked or changed meanwhile. Throws the fault that refuses it. */
  readonly callerNow: (request: FastifyRequest) => Promise<Caller>
  /** Whether the process is stopping: what runs comes to its end, and nothing further begins. */
  readonly isDraining: () => boolean
}

/** Below base_url, the longer of two paths that begin alike first. The protocol of each is fixed. */
export const BASE_PATHS = [
  { name: 'data', prefix: '/apis/v1', dialect: 'data' },
  { name: 'messages', prefix: '/v1/messages', dialect: 'anthropic' },
  { name: 'gemini', prefix: '/v1beta', dialect: 'gemini' },
  { name: 'models', prefix: '/v1', dialect: 'openai' },
] as const satisfies readonly FamilyName[]

/** The dialect of a path of base_url, as a contract says it. */
export function documentedDialect(path: string): string {
  if (isUnder(path, SHARED_PREFIX)) return 'openai_or_anthropic'
  return BASE_PATHS.find(({ prefix }) => isUnder(path, prefix))?.dialect ?? 'data'
}
