import type { Gateway } from '../../harness/gateways.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { call, codeOf, FREE } from '../acceptance/installation.ts'
import { callRaw } from '../mcp/raw-agent.ts'

/** Which operations each place says that are sold, in the order of the catalogue. */
export type Views = Readonly<Record<'site' | 'llms' | 'guide' | 'contract' | 'agents', readonly string[]>>

const inOrder = (found: ReadonlySet<unknown>) => catalogue.operations.flatMap(({ id }) => (found.has(id) ? [id] : []))
const matched = (text: string, pattern: RegExp) => inOrder(new Set([...text.matchAll(pattern)].map(([, id]) => id)))
const textAt = async (url: string) => (await fetch(url)).text()

/** A tool answers whole: the operation that only streams is none of its. */
export const STREAM_ALONE = 'stream_generate_content'

export async function viewsOf({ siteUrl, agentUrl }: Gateway, secret: string): Promise<Views> {
  const [list, llms, guide, contract, agents] = await Promise.all([
    textAt(`${siteUrl}/catalogue`),
    textAt(`${siteUrl}/llms.txt`),
    textAt(`${siteUrl}/docs/catalogue.md`),
    contractAt(siteUrl),
    callRaw(`${agentUrl}/mcp`, secret, 'list_categories', {}),
  ])
  const categories: readonly unknown[] = agents.structured.categories
  const listed = categories.flatMap((one) => Object(one).operations.map((own: unknown) => Object(own).operation_id))
  return {
    site: matched(list, /<th scope="row"><a href="\/catalogue\/(\w+)"/g),
    llms: matched(llms, /\]\(\/catalogue\/(\w+)\)/g),
    guide: matched(guide, /^## (\w+)$/gm),
    contract: inOrder(new Set(operationIdsIn(contract.document))),
    agents: inOrder(new Set(listed)),
  }
}

export async function contractAt(siteUrl: string) {
  const { contentHash } = Object(await (await fetch(`${siteUrl}/api/contracts/version`)).json())
  const text = await textAt(`${siteUrl}/api/contracts/source?hash=${contentHash}&bundled=1`)
  return { contentHash: String(contentHash), text, document: Object(JSON.parse(text)) }
}

export function operationIdsIn(document: unknown): readonly string[] {
  return Object.values(Object(Object(document).paths)).flatMap((methods) =>
    Object.values(Object(methods)).map((operation) => String(Object(operation).operationId)),
  )
}

/** What becomes of a call of each operation: whether it is refused because it is not sold. Nothing is charged: a quote is asked for where there are any. */
export async function refusedAsNotSold(url: string, secret: string): Promise<readonly string[]> {
  const refused = new Set<string>()
  for (const { id } of catalogue.operations) {
    const headers: Record<string, string> = FREE.has(id) ? {} : { 'x-farebox-cost-mode': 'quote' }
    const told = await call(url, secret, id, '', { headers })
    if (codeOf(told) === 'not_sold') refused.add(id)
  }
  return inOrder(refused)
}
