import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import type { RefusedRange } from './refused-ranges.ts'

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** A name that leads, or may lead, into a network that strangers have no business in. For the log alone. */
export class RefusedAddress extends Error {
  constructor(host: string, address: string, range: string) {
    super(`${host} leads to ${address}: ${range}`)
    this.name = 'RefusedAddress'
  }
}

const QUERY = { timeout: 1_500, tries: 2 }
/** More than any honest name has. */
const ADDRESSES_LIMIT = 64
/** Of these a connection tries one after the other, within its deadline. */
const TRIED_LIMIT = 8

type Servers = { readonly servers?: readonly string[] }

/**
 * Asks the name servers of the system, those alone: neither its file of hosts nor its search domains are for strangers, and a name
 * server that never answers must not take a thread, as the system's own way of resolving would.
 */
export function createResolve({ servers }: Servers = {}): Resolve {
  return async (name) => {
    const resolver = new Resolver(QUERY)
    if (servers !== undefined) resolver.setServers(servers)
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = [four, six].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (addresses.length === 0) throw four.status === 'rejected' ? four.reason : new Error(`${name} has no address`)
    return addresses
  }
}

/**
 * For a socket, which calls it once and connects to just what it says, so that nothing is resolved a second time. One address that
 * is not public refuses the name, whatever its others are: else it would be up to the network which of them is taken.
 */
export function createGuardedLookup(resolve: Resolve, requirePublic: RequirePublic): LookupFunction {
  return (name, { all }, callback) => {
    publicAddresses(resolve, requirePublic, name).then(
      (addresses) => {
        const [first] = addresses
        if (all) callback(null, addresses)
        else callback(null, first?.address ?? '', first?.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    )
  }
}

async function publicAddresses(resolve: Resolve, requirePublic: RequirePublic, name: string): Promise<LookupAddress[]> {
  const addresses = await resolve(name)
  if (addresses.length === 0 || addresses.length > ADDRESSES_LIMIT)
    throw new Error(`${name} has ${addresses.length} addresses`)
  for (const address of addresses) requirePublic(name, address)
  return addresses.slice(0, TRIED_LIMIT).map((address) => ({ address, family: isIP(address) }))
}

/** Throws where an address of a host is not public. */
export type RequirePublic = (host: string, address: string) => void

export function createRequirePublic(refusedRange: RefusedRange): RequirePublic {
  return (host, address) => {
    const range = refusedRange(address)
    if (range !== undefined) throw new RefusedAddress(host, address, range)
  }
}
