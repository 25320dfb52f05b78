import type { ApiRequest, ApiResponse } from '../api/request.ts'
import type { Caller } from '../identity/caller.ts'
import { asFault } from '../kernel/fault.ts'
import { admit } from './admit.ts'
import { createAdmitToTasks } from './admit-to-tasks.ts'
import type { CallerParts } from './parts.ts'
import type { CallerRoute } from './route.ts'

export type AnswerCaller = (route: CallerRoute, caller: Caller, request: ApiRequest) => Promise<ApiResponse>

/** Answers requests to callers' free routes. Each is counted first, as every request; then what was sent is parsed. */
export function createAnswerCaller(parts: CallerParts): AnswerCaller {
  const admitToTasks = createAdmitToTasks(parts)
  return async (route, caller, request) => {
    const { id, params, query, visitor, header } = request
    const rates = await (route.whileClosing === true
      ? admitToTasks({ id, caller })
      : admit(parts.begin, { id, caller }, countedAs(route)))
    try {
      const body = route.bodyForm === null ? undefined : request.readBody()
      const reply = await route.run(parts, { id, caller, params, query, body, visitor, header })
      return { status: route.answer.status ?? 200, body: reply.body, headers: { ...rates, ...reply.headers } }
    } catch (thrown) {
      throw asFault(thrown).withHeaders(rates)
    }
  }
}

function countedAs({ counts }: CallerRoute) {
  return typeof counts === 'string' ? counts : { ...counts, limits: [] }
}
