import type { Upstream } from '../../catalogue/operation.ts'
import type { Adapter } from './adapter.ts'
import { passThrough } from './pass-through.ts'
import { rerank } from './rerank.ts'

export const ADAPTERS: Readonly<Record<Upstream['adapter'], Adapter>> = { pass_through: passThrough, rerank }
