import type { Names } from '../catalogue/operation.ts'
import { canonicalBytes, sha256 } from './canonical.ts'
import { type ContractDraft, MARK } from './draft.ts'
import { asObject, operationsIn } from './problems.ts'

/** A contract as it is served: bytes that never change, and what they are known by. */
export type Contract = {
  /** SHA-256 of the bytes, in hexadecimal. */
  readonly contentHash: string
  /** SHA-256 of what the bytes were made from: routes, schemas and words. Another program may make other bytes of the same. */
  readonly docsRevision: string
  readonly bytes: Buffer
}

/** What an installation says of itself in its contract. */
export type Spelling = {
  readonly names: Names & { readonly provider: string }
  /** Under which callers reach the routes; undefined where nobody said. */
  readonly serverUrl: string | undefined
}

/** The contract of an installation. Its bytes are canonical, as the draft's text is: names alone may have another order than their marks. */
export function createContract({ text, revision }: ContractDraft, { names, serverUrl }: Spelling): Contract {
  const words: Names = { ...names, Provider: names.provider, provider: names.provider.toLowerCase() }
  const used: Record<string, string> = {}
  const spelt = text.replace(MARK, (_, mark: string) => {
    used[mark] = words[mark] ?? unspelt(mark)
    return used[mark]
  })
  const document: Value = JSON.parse(spelt)
  orderNames(document)
  document.servers = [{ url: serverUrl ?? '/' }]
  const bytes = Buffer.from(JSON.stringify(document), 'utf8')
  const docsRevision = sha256(canonicalBytes({ revision, used, serverUrl }))
  return { contentHash: sha256(bytes), docsRevision, bytes }
}

type Value = Record<string, unknown>

/** Wherever a document has names of the installation beside others: of paths, headers and parameters. */
function orderNames(document: Value): void {
  orderMembers(document, 'paths')
  orderMembers(Object(document.components), 'headers')
  for (const { operation } of operationsIn(document)) {
    const { parameters, responses } = operation
    if (Array.isArray(parameters)) parameters.sort(byPlaceAndName)
    for (const response of Object.values(asObject(responses))) orderMembers(Object(response), 'headers')
  }
}

function orderMembers(value: Value, name: string): void {
  if (value[name] !== undefined) value[name] = Object.fromEntries(Object.entries(asObject(value[name])).sort(byName))
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

type Parameter = { readonly in: string; readonly name: string }

function byPlaceAndName(a: Parameter, b: Parameter): number {
  return `${a.in} ${a.name}` < `${b.in} ${b.name}` ? -1 : 1
}

function unspelt(mark: string): never {
  throw new Error(`nothing spells ${mark} in the contract`)
}
