import assert from 'node:assert/strict'
import type { Id } from '../../server/src/kernel/ids.ts'
import { type McpHouse, type McpPerson, makePerson } from '../agents/mcp-house.ts'
import { askRaw, callBody, MODERN } from '../mcp/raw-agent.ts'
import { authorized, type Choice, createOauthClient, exchange, newPkce, registered } from '../oauth/client.ts'
import { filledIn, signIn, type Visitor } from '../people/visitor.ts'

/** Somebody with test money, and their browser. */
export type Giver = McpPerson & { readonly visitor: Visitor }

export async function makeGiver(house: McpHouse): Promise<Giver> {
  const person = await makePerson(house)
  return { ...person, visitor: await signIn(house.site, person.email) }
}

export type Mandated = { readonly token: string; readonly grantId: Id; readonly clientId: string }

/** A client that the person lets in, with what they choose on the page. */
export async function giveMandate(house: McpHouse, { visitor }: Giver, choice: Choice = {}): Promise<Mandated> {
  const client = createOauthClient(house.site)
  const clientId = await registered(client)
  const pkce = newPkce()
  const changed = { resource: house.mcpUrl, scope: 'agent' }
  const code = await authorized(visitor, { clientId, pkce, changed }, { mode: 'test', ...choice })
  const { json, text } = await exchange(client, { clientId, code, pkce })
  assert.match(String(json.access_token), /^fb_at_/, text)
  const { rows } = await house.pool.query<{ id: Id }>('select id from grants where client_id = $1', [clientId])
  return { token: String(json.access_token), grantId: rows[0]?.id ?? '', clientId }
}

export type Told = {
  readonly result: Record<string, unknown>
  readonly error: Record<string, unknown>
  readonly structured: Record<string, unknown>
  /** Our code for a refusal. */
  readonly code: unknown
}

const HEADERS = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call' }
export const OPENS_PAGES = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } } }

type Extra = { readonly meta?: object; readonly params?: object }

/** Calls a tool in the newest version, with whatever else stands beside its arguments. */
export async function callTool(
  house: McpHouse,
  token: string,
  name: string,
  given: object,
  { meta = {}, params = {} }: Extra = {},
): Promise<Told> {
  const message = callBody(name, given, meta)
  const body = { ...message, params: { ...message.params, ...params } }
  const answer = await askRaw(house.mcpUrl, token, { body, headers: { ...HEADERS, 'mcp-name': name } })
  const result = Object(answer.message.result)
  const structured = Object(result.structuredContent)
  // Nothing that is refused here may have cost anything.
  assert.equal(structured.cost_at_most_usd, undefined, JSON.stringify(structured))
  return {
    ...{ result, structured, error: Object(answer.message.error) },
    code: Object(structured.error).code ?? (answer.status === 401 ? 'unauthorized' : undefined),
  }
}

export function use(
  house: McpHouse,
  token: string,
  operation: string,
  given: object,
  extra: Extra = {},
): Promise<Told> {
  return callTool(house, token, 'use', { operation_id: operation, arguments: given, max_price_usd: 1 }, extra)
}

/** What a refusal must leave alone: rows of the ledger of the account, and what upstreams were asked. */
export async function trace({ pool, site }: McpHouse, { accountId }: Giver) {
  const { rows } = await pool.query(
    `select (select count(*) from charges where account_id = $1)::integer as charges,
       (select count(*) from holds where account_id = $1)::integer as holds,
       (select held + charged from accounts where id = $1)::text as spent`,
    [accountId],
  )
  return { ...rows[0], upstream: (await site.sandbox.journal()).length }
}

/** Changes a mandate as its person does: sees the sentence, and sends it once more. */
export async function changeTerms(
  { visitor }: Giver,
  grantId: Id,
  choice: Readonly<Record<string, string>>,
): Promise<void> {
  const page = `/mandates/${grantId}`
  const action = `${page}/terms`
  const { text } = await visitor.get(page)
  const first = await visitor.post(action, { ...filledIn(text, action), ...choice })
  assert.equal(first.status, 200, first.text)
  assert.match(first.text, /What you are about to allow/)
  const second = await visitor.post(action, filledIn(first.text, action))
  assert.equal(second.status, 303, second.text)
}

/** Decides about a call as its person does; what the page said. */
export async function decide({ visitor }: Giver, path: string, decision: 'once' | 'refuse'): Promise<string> {
  const page = await visitor.get(path)
  assert.equal(page.status, 200, page.text)
  const { status } = await visitor.post(path, { ...filledIn(page.text, path), decision })
  assert.equal(status, 303)
  return page.text
}

/** Where a call waits for its person. */
export function approvalOf(house: McpHouse, { code, structured }: Told): { readonly id: Id; readonly path: string } {
  assert.equal(code, 'approval_required', JSON.stringify(structured))
  const { approval_url: url, approval_id: id } = Object(structured.error)
  assert.equal(url, `${house.site.url}/approvals/${id}`)
  return { id, path: `/approvals/${id}` }
}
