import type { JsonSchema } from '../catalogue/member-table.ts'
import type { FaultCode } from '../kernel/fault.ts'

/**
 * What a caller has to know of one route. A contract is made of a list of these: those of the catalogue are derived from its operations
 * (operation-routes.ts), the others stand beside the routes that they describe. Schemas are JSON Schema 2020-12.
 */
export type ContractRoute = {
  readonly operationId: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Whole, with {parameters} as OpenAPI has them; other {names} are spelt already. */
  readonly path: string
  readonly summary: string
  readonly description?: string
  readonly tag: string
  /** A pending definition is incomplete: what is missing is not described, and passes through. */
  readonly definition?: 'pending'
  /** `optional`: who has no credential is told that there is nothing. */
  readonly access: 'credential' | 'optional' | 'public'
  readonly parameters?: readonly ContractParameter[]
  readonly body?: ContractBody
  /** What it answers when it does not refuse, by status. */
  readonly answers: Readonly<Record<number, ContractAnswer>>
  readonly refusals?: Refusals
  /** Answers of providers are passed on with their own status, body and content type. */
  readonly passesOn?: true
}

export type ContractParameter = {
  readonly in: 'query' | 'header' | 'path'
  readonly name: string
  readonly description: string
  readonly required?: boolean
  readonly schema: JsonSchema
  /** It stands for all names of a query that have no parameter of their own. */
  readonly isForOthers?: true
}

export type ContractBody = {
  readonly description?: string
  readonly required: boolean
  readonly type?: 'application/json' | 'application/x-www-form-urlencoded'
  readonly schema: JsonSchema
}

export type ContractAnswer = {
  readonly description: string
  /** By content type; none where there is no body. */
  readonly content?: Readonly<Record<string, JsonSchema>>
  readonly headers?: readonly string[]
}

/** How a route refuses: in which shape, and with which codes. Routes of one name refuse alike. */
export type Refusals = {
  readonly name: string
  readonly dialect: string
  readonly codes: readonly FaultCode[]
  /** Whether its 400 has a shape of its own. */
  readonly dialectOf400?: string
}

/** What a header of answers says. */
export type HeaderWords = { readonly description: string; readonly schema: JsonSchema }
