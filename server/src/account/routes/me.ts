import { z } from 'zod'
import { Fault } from '../../kernel/fault.ts'
import { ROLES } from '../../kernel/role.ts'
import { showPerson } from '../../people/operate.ts'
import { type AccountRoute, forAnybody, forAnyMember } from '../route.ts'

const me = z.strictObject({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  has_second_factor: z.boolean(),
  form_token: z
    .string()
    .nullable()
    .meta({ description: 'For a browser: what every change has to bring as X-Form-Token. Null for an access token.' }),
  access: z
    .strictObject({ workspace_id: z.string(), mode: z.enum(['live', 'test']) })
    .nullable()
    .meta({ description: 'Of an access token: what it is for. Null for a browser, which sees all workspaces.' }),
  workspaces: z
    .array(z.strictObject({ id: z.string(), name: z.string(), role: z.enum(ROLES) }))
    .meta({ description: 'Those that can be seen, at most 1,000.' }),
})

export const ME_ROUTES: readonly AccountRoute[] = [
  forAnybody({
    operationId: 'get_document',
    method: 'GET',
    path: '/openapi.json',
    tokens: 'both',
    summary: 'This document',
    tag: 'document',
    answer: { description: 'An OpenAPI document.', body: z.looseObject({ openapi: z.string() }) },
    run: async ({ document }) => ({
      body: (await document()).toString('utf8'),
      type: 'application/json; charset=utf-8',
    }),
  }),
  forAnyMember({
    operationId: 'get_me',
    method: 'GET',
    path: '/me',
    tokens: 'both',
    summary: 'Who is signed in',
    tag: 'workspaces',
    answer: { description: 'The person.', body: me },
    async run({ pool }, { member: { personId, formToken, granted } }) {
      const person = await showPerson(pool, personId)
      if (person === undefined) throw new Fault('sign_in_required')
      const seen = person.workspaces.filter(({ id }) => granted === null || id === granted.workspaceId)
      return {
        body: {
          ...{ id: person.id, email: person.email, name: person.name, has_second_factor: person.hasSecondFactor },
          form_token: formToken,
          access: granted && { workspace_id: granted.workspaceId, mode: granted.mode },
          workspaces: seen.map(({ id, name, role }) => ({ id, name, role })),
        },
      }
    },
  }),
]
