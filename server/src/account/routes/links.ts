import { z } from 'zod'
import { PAGE, pageFrom, pageOf } from '../../api/pages.ts'
import { findKeyIn } from '../../identity/keys-of-account.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Session } from '../../links/sessions.ts'
import { accountIn } from '../../people/membership.ts'
import { requireOwnMode } from '../authenticate.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const link = z.strictObject({
  id: z.string(),
  credential_id: z.string().meta({ description: 'The key, or the grant, that acts for it.' }),
  username: z.string().nullable(),
  scopes: z.array(z.string()),
  state: z.enum(['linked', 'expired', 'revoked', 'lost', 'ending']),
  linked_at: z.iso.datetime(),
  refused_at: z.iso
    .datetime()
    .nullable()
    .meta({ description: 'Since when the platform refuses its tokens, until they are taken again.' }),
})

export function toldLink(session: Session): z.output<typeof link> {
  const { id, credentialId, username, scopes, ended, linkedAt, refusedAt } = session
  return {
    ...{ id, credential_id: credentialId, username, scopes: [...scopes], state: ended ?? 'linked' },
    linked_at: linkedAt.toISOString(),
    refused_at: refusedAt?.toISOString() ?? null,
  }
}

export const LINK_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_links',
    method: 'GET',
    path: '/workspaces/{workspace_id}/links',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Linked accounts of all keys, by the newest key first',
    tag: 'links',
    query: z.strictObject(PAGE),
    answer: { description: 'A page of linked accounts.', body: pageOf(link) },
    async run({ links }, { place, mode, query: { limit, cursor = null } }) {
      const rows = await links.listOfAccount(accountIn(place, mode), { after: cursor, most: limit + 1 })
      const { data, next_cursor } = pageFrom(
        rows.map((row) => ({ ...row, id: row.credentialId, row })),
        limit,
        ({ row }) => toldLink(row),
      )
      return { body: { data, next_cursor } }
    },
  }),
  inWorkspace({
    operationId: 'remove_link',
    method: 'DELETE',
    path: '/workspaces/{workspace_id}/keys/{key_id}/links/{link_id}',
    need: 'keys.manage',
    tokens: 'own mode',
    mode: 'its own',
    isOutside: true,
    whileClosing: true,
    summary: 'End a linked account of a key, here and at the platform',
    tag: 'links',
    answer: { description: 'What has ended.', body: z.strictObject({ id: z.string(), credential_id: z.string() }) },
    codes: ['upstream_transport', 'not_configured'],
    async run({ links }, { member, place, on, params: { key_id: keyId = '', link_id: id = '' } }) {
      const key = await findKeyIn(on, { workspaceId: place.id, id: keyId })
      requireOwnMode(member, key.mode)
      if (!(await links.revoke(key.id, id, member.by))) throw new Fault('resource_not_found')
      return { body: { id, credential_id: key.id } }
    },
  }),
]
