import { isIP } from 'node:net'

/**
 * Networks of addresses, as `10.0.0.0/8` or `2001:db8::/32` names them. An IPv6 address that stands for one of IPv4 is that one, in a
 * network as in a caller's address, so that each caller has one address however its connection came.
 */
export type Networks = {
  /** Each in its one spelling. */
  readonly texts: readonly string[]
  /** Whether an address is in one of them. What is no address is in none. */
  readonly has: (address: string) => boolean
}

type Address = { readonly family: 4 | 6; readonly value: bigint }
type Network = Address & { readonly bits: number }

const WIDTH = { 4: 32, 6: 128 } as const
/** Before the 32 bits of an address of IPv4 that is written as one of IPv6. */
const MAPPED = 0xffffn
const MAPPED_BITS = 96

/** Throws where one of the texts names no network. */
export function createNetworks(texts: readonly string[]): Networks {
  const networks = texts.map(readNetwork)
  return {
    texts: [...new Set(networks.map(textOf))],
    has(text) {
      const address = addressIn(text)
      return address !== undefined && networks.some((network) => holds(network, address))
    },
  }
}

function holds({ family, value, bits }: Network, address: Address): boolean {
  const rest = BigInt(WIDTH[family] - bits)
  return family === address.family && value >> rest === address.value >> rest
}

const FORM = /^([0-9A-Fa-f:.]{2,45})(?:\/(0|[1-9]\d{0,2}))?$/

/**
 * Reads one text. Strictly: what some program could read as another network (octal numbers, a zone, blanks, bits beyond the length)
 * is refused, and who wrote it says what was meant.
 */
function readNetwork(text: string): Network {
  const [, written = '', length] = FORM.exec(text) ?? []
  const version = isIP(written)
  if (version !== 4 && version !== 6)
    throw new RangeError(`${quoted(text)} is not an address or network: use 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32`)
  const given = length === undefined ? WIDTH[version] : Number(length)
  if (given > WIDTH[version]) throw new RangeError(`${quoted(text)} is too long: /${WIDTH[version]} is one address`)
  const value = numberOf(written, version)
  const network: Network =
    isMapped(version, value) && given >= MAPPED_BITS ? unmapped(value, given) : { family: version, value, bits: given }
  const rest = BigInt(WIDTH[network.family] - network.bits)
  const first = { ...network, value: (network.value >> rest) << rest }
  if (first.value !== network.value)
    throw new RangeError(`${quoted(text)} has bits beyond its length: use ${textOf(first)}, or a longer prefix`)
  return network
}

function unmapped(value: bigint, bits: number): Network {
  return { family: 4, value: value & 0xffff_ffffn, bits: bits - MAPPED_BITS }
}

/** Undefined for what is none. A zone says by which interface it came, and is no part of it. */
function addressIn(text: string): Address | undefined {
  const [written = ''] = text.split('%', 1)
  const family = isIP(written)
  if (family !== 4 && family !== 6) return undefined
  const value = numberOf(written, family)
  return isMapped(family, value) ? unmapped(value, WIDTH[6]) : { family, value }
}

function isMapped(family: 4 | 6, value: bigint): boolean {
  return family === 6 && value >> 32n === MAPPED
}

/** Of a text that is an address of that family. */
function numberOf(text: string, family: 4 | 6): bigint {
  return family === 4 ? joined(text.split('.').map(Number), 8n) : joined(groupsOf(text), 16n)
}

function joined(parts: readonly number[], bits: bigint): bigint {
  return parts.reduce((value, part) => (value << bits) | BigInt(part), 0n)
}

/** The eight groups of an address of IPv6, of which :: leaves out those that are 0. */
function groupsOf(text: string): readonly number[] {
  const [head = '', tail = ''] = text.split('::')
  const [before, after] = [partsOf(head), partsOf(tail)]
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** The last two may be written as an address of IPv4. */
function partsOf(text: string): readonly number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)]
    const value = Number(numberOf(part, 4))
    return [Math.floor(value / 65_536), value % 65_536]
  })
}

function textOf({ family, value, bits }: Network): string {
  if (family === 4) return `${partsIn(value, 4, 8n).join('.')}/${bits}`
  const groups = partsIn(value, 8, 16n).map((group) => group.toString(16))
  // The one spelling of RFC 5952, which URLs have.
  return `${new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)}/${bits}`
}

function partsIn(value: bigint, count: number, bits: bigint): readonly bigint[] {
  return Array.from({ length: count }, (_, at) =>
    BigInt.asUintN(Number(bits), value >> (bits * BigInt(count - 1 - at))),
  )
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 60))
}
