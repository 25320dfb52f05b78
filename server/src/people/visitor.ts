import { networkOf } from '../identity/failures-by-address.ts'
import type { Id } from '../kernel/ids.ts'
import type { By, Origin } from '../storage/audit.ts'

/** What a request tells of somebody before they have signed in. */
export type Visitor = {
  readonly address: string
  /** What is around the address: /24 of IPv4, /48 of IPv6. */
  readonly network: string
  readonly agent: string
}

const ADDRESS_LIMIT = 64
const AGENT_LIMIT = 200

export function visitorOf(address: string, agent = ''): Visitor {
  const near = networkOf(address)
  const separator = near.includes(':') ? ':' : '.'
  return {
    address: address.slice(0, ADDRESS_LIMIT),
    network: near.split(separator).slice(0, 3).join(separator),
    // PostgreSQL takes no zero byte, and a terminal obeys what it is shown.
    agent: agent
      .toWellFormed()
      .replaceAll(/\p{Cc}/gu, '?')
      .slice(0, AGENT_LIMIT),
  }
}

/** From where a request came, for the audit log. */
export function originOf({ address, agent }: Visitor): Origin {
  return { via: 'http', address, ...(agent !== '' && { userAgent: agent }) }
}

/** A person as the actor of the audit log. */
export function byPerson(personId: Id, visitor: Visitor): By {
  return { actor: `member ${personId}`, origin: originOf(visitor) }
}
