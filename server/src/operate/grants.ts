import { z } from 'zod'
import { type ListedGrant, listGrants, revokeGrant } from '../grants/grants.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { action } from './action.ts'
import { accountField, budgetLine, idField, unknown } from './fields.ts'
import { ownTerms, stateOf } from './key-terms.ts'

const list = action({
  name: 'grants list',
  summary: 'list the grants of a customer, active ones first',
  effect: 'reads',
  positional: ['account'],
  input: z.object({ account: accountField() }),
  async run({ pool }, { account }) {
    const { id } = await findWorkspace(pool, account).catch(unknown(`account ${account}`))
    return listGrants(pool, { workspaceId: id })
  },
  lines: (all) => (all.length === 0 ? ['There are no grants.'] : all.map(lineOf)),
})

function lineOf(grant: ListedGrant): string {
  const { id, mode, clientName, clientId, personId, oauthScopes, budget, terms } = grant
  const whose = `${clientName} (${clientId})  of person ${personId}`
  const amount = budget === null ? 'no budget, so it cannot pay' : budgetLine(budget)
  return [id, mode, whose, oauthScopes.join(', '), stateOf(grant), amount, ...ownTerms(terms)].join('  ')
}

const revoke = action({
  name: 'grants revoke',
  summary: 'revoke a grant: its tokens can no longer start paid calls',
  effect: 'writes',
  positional: ['grant'],
  input: z.object({ grant: idField('grant', 'id of the grant') }),
  async run({ pool, by }, { grant }) {
    await revokeGrant({ pool }, by, grant).catch(unknown(`grant ${grant}`))
    return { id: grant }
  },
  lines: ({ id }) => [`Grant ${id} is revoked: its tokens can no longer start paid calls.`],
})

export const grants = [list, revoke]
