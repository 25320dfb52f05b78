import { BlockList, isIP } from 'node:net'

/**
 * Where no address of a stranger may lead: IANA's registries of special-purpose addresses, whatever is no global unicast of IPv6,
 * and what clouds serve to their machines outside of those. The first that holds an address is what the log says of it.
 */
const REFUSED: readonly (readonly [range: string, what: string])[] = [
  ['0.0.0.0/8', 'this host or network'],
  ['10.0.0.0/8', 'private use'],
  ['100.100.100.200/32', 'metadata of a cloud'],
  ['100.64.0.0/10', 'shared by the customers of a carrier (CGNAT)'],
  ['127.0.0.0/8', 'loopback'],
  ['168.63.129.16/32', 'metadata of a cloud'],
  ['169.254.169.254/32', 'metadata of a cloud'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private use'],
  ['192.0.0.0/24', 'protocol assignments'],
  ['192.0.2.0/24', 'documentation'],
  ['192.31.196.0/24', 'AS112'],
  ['192.52.193.0/24', 'multicast tunnels (AMT)'],
  ['192.88.99.0/24', 'relays of 6to4'],
  ['192.168.0.0/16', 'private use'],
  ['192.175.48.0/24', 'AS112'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['255.255.255.255/32', 'broadcast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['::ffff:0:0/96', 'IPv4-mapped'],
  ['::/96', 'IPv4-compatible'],
  ['64:ff9b::/96', 'NAT64'],
  ['64:ff9b:1::/48', 'NAT64, local use'],
  ['100::/64', 'discarded'],
  ['2001::/32', 'Teredo'],
  ['2001:2::/48', 'benchmarking'],
  ['2001::/23', 'protocol assignments'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4'],
  ['2620:4f:8000::/48', 'AS112'],
  ['3fff::/20', 'documentation'],
  ['fd00:ec2::/32', 'metadata of a cloud'],
  ['fd20:ce::/32', 'metadata of a cloud'],
  ['fc00::/7', 'unique local'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'site-local'],
  ['ff00::/8', 'multicast'],
  // What is left outside of 2000::/3, from which alone global addresses are given out.
  ['::/3', 'not global unicast'],
  ['4000::/2', 'not global unicast'],
  ['8000::/1', 'not global unicast'],
]

type Family = 'ipv4' | 'ipv6'

/** What an address is for, where no stranger may send us there; undefined for a public one. */
export type RefusedRange = (address: string) => string | undefined

/**
 * `networks` are those of the operator's own that look public: machines inside with global addresses, or a NAT64 prefix of one's own,
 * behind which every private address is.
 */
export function createRefusedRange(networks: readonly string[]): RefusedRange {
  // Each has a list of its own: in one list, Node holds IPv4 addresses against ranges of IPv6 as well, as mapped ones.
  const ranges = [...REFUSED, ...networks.map((range) => [range, "the operator's own network"] as const)].map(rangeOf)
  return (address) => {
    const family = isIP(address)
    // A zone (fe80::1%eth0) names an interface of this machine.
    if (family === 0 || address.includes('%')) return 'not an address'
    const name: Family = family === 4 ? 'ipv4' : 'ipv6'
    return ranges.find((range) => range.family === name && range.list.check(address, name))?.what
  }
}

function rangeOf([range, what]: readonly [range: string, what: string]) {
  const [network = '', bits] = range.split('/')
  const family: Family = isIP(network) === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  list.addSubnet(network, Number(bits ?? (family === 'ipv4' ? 32 : 128)), family)
  return { family, what, list }
}
