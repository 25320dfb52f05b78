import type { AgentRequest } from '../http/agent-routes.ts'
import type { Answer } from '../upstreams/adapters/adapter.ts'
import type { MetaNames } from './parts.ts'
import type { CallTool } from './tools.ts'

type Parts = { readonly callTool: CallTool; readonly metaNames: MetaNames }

export function createShortPath(_parts: Parts) {
  return async (_request: AgentRequest, _body: unknown): Promise<Answer | undefined> => undefined
}
