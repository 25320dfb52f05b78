import { contractRouteOf } from '../api/contract.ts'
import type { Names } from '../catalogue/operation.ts'
import { refusalsOfFree } from '../contracts/refusals.ts'
import type { ContractRoute } from '../contracts/route.ts'
import { RATE_HEADERS } from '../limits/headers.ts'
import type { HeaderNames } from '../wording/header-names.ts'
import { pathOf } from './route.ts'
import { CALLER_ROUTES } from './routes.ts'

type Words = {
  readonly names: Names
  readonly headerNames: HeaderNames
  /** In which shape a path refuses. */
  readonly dialectOf: (path: string) => string
}

/** The places of callers' free routes in the contract of base_url. */
export function callerContractRoutes({ names, headerNames, dialectOf }: Words): readonly ContractRoute[] {
  return CALLER_ROUTES.map((route) => {
    const {
      description,
      params = {},
      headers = [],
      answerHeaders = [],
      refusesAs: name,
      plainBadRequest,
      codes,
    } = route
    const path = pathOf(route, names)
    const { parameters = [], ...described } = contractRouteOf(route, {
      ...{ path, access: 'credential', description, params, headers },
      answerHeaders: [...answerHeaders.map((one) => headerNames[one]), ...RATE_HEADERS],
      refusals: refusalsOfFree(dialectOf(path), {
        ...(name !== undefined && { name }),
        ...(codes !== undefined && { codes }),
        ...(plainBadRequest && { dialectOf400: 'plain' }),
      }),
    })
    return parameters.length === 0 ? described : { ...described, parameters }
  })
}
