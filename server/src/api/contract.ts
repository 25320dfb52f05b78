import { z } from 'zod'
import { queryParameters } from '../contracts/query-parameters.ts'
import type { ContractParameter, ContractRoute, Refusals } from '../contracts/route.ts'
import { schemaOf } from '../contracts/schema-of.ts'
import type { Forms, RouteDescription } from './route.ts'

/** What an API says of all its routes alike, and a record therefore does not. */
export type Common = {
  readonly path: string
  readonly access: ContractRoute['access']
  readonly description?: string | undefined
  /** What each {parameter} of a path is. */
  readonly params: Readonly<Record<string, string>>
  readonly headers: readonly ContractParameter[]
  /** On the answers. */
  readonly answerHeaders: readonly string[]
  readonly refusals: Refusals
}

/** The place of a route in the contract of its API. */
export function contractRouteOf(route: RouteDescription & Forms, common: Common): ContractRoute {
  const { operationId, method, summary, tag, definition, queryForm, bodyForm, bodyWords } = route
  const { path, access, description, params, headers, refusals } = common
  return {
    ...{ operationId, method, path, summary, tag, access, refusals },
    ...(definition !== undefined && { definition }),
    ...(description !== undefined && { description }),
    parameters: [
      ...[...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name = '']) => inPath(name, params[name])),
      ...queryParameters(queryForm),
      ...headers,
    ],
    ...(bodyForm !== null && {
      body: {
        required: !bodyForm.safeParse({}).success,
        ...(bodyWords !== undefined && { description: bodyWords }),
        schema: schemaOf(bodyForm, 'input'),
      },
    }),
    answers: answersOf(route, common.answerHeaders),
  }
}

function inPath(name: string, description: string | undefined): readonly ContractParameter[] {
  if (description === undefined) throw new Error(`the parameter ${name} is described nowhere`)
  return [{ in: 'path', name, description, schema: { type: 'string', minLength: 1 } }]
}

function answersOf({ answer }: RouteDescription, headers: readonly string[]): ContractRoute['answers'] {
  const { status = 200, description, body, isTable, type = 'application/json' } = answer
  if (body instanceof z.ZodNever) return {}
  if (body instanceof z.ZodUndefined) return { [status]: { description } }
  const content = { [type]: schemaOf(body), ...(isTable === true && { 'text/csv': { type: 'string' } }) }
  return { [status]: { description, headers, content } }
}
