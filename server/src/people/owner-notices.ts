import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Role } from '../kernel/role.ts'
import type { Mail, SendMail } from '../storage/mail.ts'
import type { Query } from '../storage/transaction.ts'

/** What owners are written of who belongs to their workspace. Null without a master key or a website: then an operator changes it, and nobody is told. */
export type Notices = { readonly sendMail: SendMail; readonly siteUrl: string } | null

/** Who changes members where no person does. */
export const OPERATOR = { name: 'The operator', email: '' }

const personRow = z.object({ name: z.string(), email: z.string() })

/** By what others know who does something. */
export async function personNamed(query: Query, personId: Id | null): Promise<z.output<typeof personRow>> {
  if (personId === null) return OPERATOR
  const { rows } = await query('select name, email from people where id = $1', [personId])
  return personRow.parse(rows[0])
}

type Raised = {
  readonly workspace: { readonly id: Id; readonly name: string }
  readonly email: string
  readonly from: Role | null
  readonly to: Role
  /** By whom: an operator where it is nobody. */
  readonly personId: Id | null
}

/** Tells the owners, as they are before it, of somebody who becomes one of them, or an admin. */
export async function tellOfAdmin(query: Query, notices: Notices, raised: Raised): Promise<void> {
  const { workspace, email, from, to: role, personId } = raised
  const isRaised = role === 'owner' ? from !== 'owner' : role === 'admin' && from !== 'owner' && from !== 'admin'
  if (!isRaised || notices === null) return
  const by = (await personNamed(query, personId)).name
  const letter = { what: 'admin_added', workspace: workspace.name, member: email, role, by } as const
  await tellOwners(query, notices, { workspaceId: workspace.id, except: email, letter })
}

type Removed = Pick<Raised, 'workspace' | 'email' | 'personId'> & {
  /** How many of theirs worked, and what became of them. */
  readonly keys: number
  readonly became: 'revoked' | 'kept' | 'assigned' | null
}

/** Tells the owners who are left of somebody who is no member any more. */
export async function tellOfRemoval(query: Query, notices: Notices, removed: Removed): Promise<void> {
  const { workspace, email, personId, keys, became } = removed
  if (notices === null) return
  const by = (await personNamed(query, personId)).name
  const letter = { what: 'member_removed', workspace: workspace.name, member: email, by, keys, became } as const
  await tellOwners(query, notices, { workspaceId: workspace.id, except: email, letter })
}

type OwnerLetter =
  | 'admin_added'
  | 'member_removed'
  | 'charge_refunded'
  | 'link_refused'
  | 'workspace_suspended'
  | 'workspace_resumed'
type Unaddressed<Letter> = Letter extends Mail ? Omit<Letter, 'to' | 'siteUrl'> : never
type Told = {
  readonly workspaceId: Id
  /** An address that is told otherwise. */
  readonly except?: string
  readonly letter: Unaddressed<Extract<Mail, { what: OwnerLetter }>>
}

const emailRow = z.object({ email: z.string() })

/** Writes to every owner, and says to how many. */
export async function tellOwners(
  query: Query,
  { sendMail, siteUrl }: NonNullable<Notices>,
  told: Told,
): Promise<number> {
  const { rows } = await query(
    `select people.email from members join people on people.id = person_id
     where workspace_id = $1 and role = 'owner' and members.email <> $2 order by members.id limit 500`,
    [told.workspaceId, told.except ?? ''],
  )
  const owners = z.array(emailRow).parse(rows)
  for (const { email: to } of owners) await sendMail(query, { ...told.letter, to, siteUrl })
  return owners.length
}
