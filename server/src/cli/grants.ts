import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { type ListedGrant, listGrants, revokeGrant } from '../identity/grants.ts'
import { findWorkspace } from '../identity/workspaces.ts'
import { budgetLine } from './budget-text.ts'
import { accountIdOf, idOf, operator, print, reading, running, unknown, withPools, writing } from './command.ts'
import { ownTerms, stateOf } from './key-terms.ts'

export function addGrantCommands(program: Command): void {
  const grants = program.command('grants').description('manage grants that people gave to OAuth clients')
  reading(grants, 'list <account>')
    .description('list the grants of a customer, active ones first')
    .action((account: string) => running((config) => list(config, account)))
  writing(grants, 'revoke <grant>')
    .description('revoke a grant: its tokens can no longer start paid calls')
    .action((grant: string) => running((config) => revoke(config, grant)))
}

async function list(config: Config, account: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const { id } = await findWorkspace(pool, accountIdOf(account)).catch(unknown(`account ${account}`))
    const grants = await listGrants(pool, { workspaceId: id })
    if (grants.length === 0) return print('There are no grants.')
    // Clients choose their names, and a terminal obeys what it is shown.
    for (const grant of grants) print(lineOf(grant).replace(/\p{Cc}/gu, '?'))
  })
}

function lineOf(grant: ListedGrant): string {
  const { id, mode, clientName, clientId, personId, oauthScopes, budget, terms } = grant
  const whose = `${clientName} (${clientId})  of person ${personId}`
  const amount = budget === null ? 'no budget, so it cannot pay' : budgetLine(budget)
  return [id, mode, whose, oauthScopes.join(', '), stateOf(grant), amount, ...ownTerms(terms)].join('  ')
}

async function revoke(config: Config, grant: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    await revokeGrant({ pool }, operator(), idOf(grant)).catch(unknown(`grant ${grant}`))
    print(`Grant ${grant} is revoked: its tokens can no longer start paid calls.`)
  })
}
