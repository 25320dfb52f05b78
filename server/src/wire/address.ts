import { BlockList, isIP } from 'node:net'

/** Which address a request counts for. A header is believed only as far as trusted proxies wrote it. */
export type Addresses = {
  readonly isTrusted: (address: string) => boolean
  /** `peer` is the other end of the connection, `forwardedFor` the header of that name. */
  readonly callerAddress: (peer: string, forwardedFor: string | undefined) => string
}

const HOPS_LIMIT = 16

export function createAddresses(
  trustedProxies: readonly string[],
  onUnlisted: (peer: string) => void = () => {},
): Addresses {
  const trusted = readNetworks(trustedProxies)
  const isTrusted = (address: string) =>
    trustedProxies.length > 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

  function callerAddress(peer: string, forwardedFor: string | undefined): string {
    if (forwardedFor === undefined) return peer
    if (!isTrusted(peer)) {
      onUnlisted(peer)
      return peer
    }
    let known = peer
    // Each proxy appends whom it saw, so the list is read from its end, as long as trusted ones have written it.
    const hops = forwardedFor.split(',').slice(-HOPS_LIMIT)
    for (let hop = hops.pop(); hop !== undefined && isTrusted(known); hop = hops.pop()) {
      const address = plainAddress(withoutPort(hop.trim()))
      if (isIP(address) === 0) return known
      known = address
    }
    return known
  }

  return { isTrusted, callerAddress }
}

const WITH_PORT = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/

/** Some balancers write whom they saw with its port, and IPv6 in brackets. Not read, all callers would be at the balancer's own address. */
function withoutPort(hop: string): string {
  const [, bracketed, plain] = WITH_PORT.exec(hop) ?? []
  return bracketed ?? plain ?? hop
}

const MAPPED = '::ffff:'

/** An IPv4 caller of a socket that takes both kinds appears as `::ffff:192.0.2.1`; it is the same caller. */
export function plainAddress(address: string): string {
  const inner = address.toLowerCase().startsWith(MAPPED) ? address.slice(MAPPED.length) : address
  return isIP(inner) === 4 ? inner : address
}

function readNetworks(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    const version = isIP(address)
    const bits = prefix === undefined ? (version === 6 ? 128 : 32) : Number(prefix)
    if (version === 0 || !/^\d{1,3}$/.test(prefix ?? '0') || bits > (version === 6 ? 128 : 32)) {
      throw new RangeError(`not an address or network: ${JSON.stringify(network.slice(0, 60))}; write 10.0.0.0/8`)
    }
    list.addSubnet(address, bits, version === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}
