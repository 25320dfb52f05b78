import type { People } from '../../../server/src/identity/people/people.ts'
import { visitorOf } from '../../../server/src/identity/people/visitor.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import type { Role } from '../../../server/src/kernel/role.ts'

/** What somebody does, as a value that another process can be told to do. */
export type Deed =
  | { readonly do: 'sign up'; readonly email: string; readonly password: string }
  | { readonly do: 'verify'; readonly token: string }
  | { readonly do: 'reset'; readonly token: string; readonly password: string }
  | { readonly do: 'invite'; readonly by: Id; readonly workspaceId: Id; readonly email: string; readonly role: Role }
  | { readonly do: 'join'; readonly personId: Id; readonly token: string }
  | { readonly do: 'transfer'; readonly by: Id; readonly workspaceId: Id; readonly to: Id }
  | { readonly do: 'leave'; readonly personId: Id; readonly workspaceId: Id }

export type Done = 'done' | 'nothing' | (string & {})

/** Whether it was done, came to nothing, or by which fault it was refused. */
export async function perform(people: People, deed: Deed, address: string): Promise<Done> {
  try {
    return (await begin(people, deed, address)) === null ? 'nothing' : 'done'
  } catch (error) {
    return String(Object(error).code ?? error)
  }
}

function begin(people: People, deed: Deed, address: string): Promise<unknown> {
  const visitor = visitorOf(address, 'a browser')
  switch (deed.do) {
    case 'sign up':
      return people.signUp(visitor, { name: 'Some One', email: deed.email, password: deed.password })
    case 'verify':
      return people.verify(visitor, deed.token)
    case 'reset':
      return people.reset(visitor, deed.token, deed.password)
    case 'invite':
      return people.invite(deed.by, deed.workspaceId, { email: deed.email, role: deed.role }, visitor)
    case 'join':
      return people.decideInvitation(deed.personId, deed.token, 'join', visitor)
    case 'transfer':
      return people.transfer(deed.by, deed.workspaceId, deed.to, visitor)
    case 'leave':
      return people.leave(deed.personId, deed.workspaceId, visitor)
  }
}
