/** What a member of a workspace is, and what that lets them do: the one table of it. */
export const ROLES = ['owner', 'admin', 'developer', 'billing', 'viewer'] as const
export type Role = (typeof ROLES)[number]

/** What a role is asked for. Whoever is no member may do none of it. */
export const PERMISSIONS = [
  /** See the workspace's name, its members, its usage and its requests. */
  'workspace.read',
  /** Make, change, rotate and revoke keys; use the playground. */
  'keys.manage',
  /** Let agents spend, within a mandate. */
  'mandates.give',
  /** See the balance, statements and payments. */
  'billing.read',
  /** Add credit; choose what is told about money. */
  'billing.manage',
  /** Invite, remove and change the role of members who are no owners. */
  'members.manage',
  /** Rename the workspace; change what holds for all its keys. */
  'workspace.manage',
  /** Make, demote and remove owners; hand the workspace over; close it. */
  'owners.manage',
] as const
export type Permission = (typeof PERMISSIONS)[number]

const PERMISSIONS_OF: Readonly<Record<Role, readonly Permission[]>> = {
  owner: PERMISSIONS,
  admin: PERMISSIONS.filter((permission) => permission !== 'owners.manage'),
  developer: ['workspace.read', 'keys.manage', 'mandates.give', 'billing.read'],
  billing: ['workspace.read', 'billing.read', 'billing.manage'],
  viewer: ['workspace.read', 'billing.read'],
}

export function may(role: Role, permission: Permission): boolean {
  return PERMISSIONS_OF[role].includes(permission)
}

/** Whose membership has something of an owner's is an owner's business; all others' is whoever's who manages members. */
export function mayChange(actor: Role, from: Role | null, to: Role | null): boolean {
  return may(actor, from === 'owner' || to === 'owner' ? 'owners.manage' : 'members.manage')
}
