import assert from 'node:assert/strict'
import { request } from 'undici'
import { ask as askCalls } from '../../acceptance/installation.ts'
import { listIn } from '../../account/house.ts'
import { PASSWORD, signIn } from '../../people/visitor.ts'
import {
  type Attack,
  accountToken,
  joins,
  memberOf,
  newcomer,
  newKey,
  type Person,
  type Sent,
  type World,
} from './world.ts'

type Route = { readonly method: string; readonly path: string; readonly id: string }

/** What the document of the account API lists, as anybody can read it. */
async function routesOf({ url }: World): Promise<readonly Route[]> {
  const document = Object(await (await request(`${url}/account/v1/openapi.json`)).body.json())
  return Object.entries<Record<string, { operationId?: string }>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId: id }]) =>
      id === undefined ? [] : [{ method: method.toUpperCase(), path: path.replace('/account/v1', ''), id }],
    ),
  )
}

const BODIES: Readonly<Record<string, object>> = {
  create_workspace: { name: 'mine' },
  update_workspace: { name: 'taken' },
  set_budget: { period: 'day', amount_usd: '0.000001' },
  update_budget: { amount_usd: '999' },
  ask_closure: { name: "Mira Halloran's workspace" },
  create_invitation: { email: 'thief@harbour.example', role: 'admin' },
  create_key: { name: 'taken' },
  update_key: { name: 'taken', scopes: null },
  rotate_key: { overlap_seconds: 0 },
  update_member: { role: 'viewer' },
  create_quota_request: { requests_per_minute: 9, tokens_per_minute: 9, targets: ['x'], use_case: 'x' },
}

/** Everything of a workspace that is not about test money, as its owner sees it. */
async function liveState(owner: Person): Promise<string> {
  const lists = ['/members', '/invitations', '/keys?mode=live', '/budgets?mode=live', '/quota-requests']
  const told = await Promise.all(lists.map(async (path) => listIn(await owner.own(path))))
  const closure = await owner.own('/closure')
  return JSON.stringify([told, (await owner.own('')).json.name, closure.status, closure.json])
}

/** A workspace with something of each kind for live money, marked so that it is found wherever it comes out. */
async function wealthy(world: World) {
  const owner = await newcomer(world)
  const colleague = await newcomer(world, { name: 'Jo Larsen' })
  const memberId = await joins(world, owner, colleague, 'admin')
  const key = await newKey(owner, 'live', { name: 'canary key' })
  const budget = await owner.own('/budgets?mode=live', {
    method: 'POST',
    body: { period: 'month', amount_usd: '7', tag: 'canary=budget' },
  })
  const invitation = await owner.own('/invitations', {
    method: 'POST',
    body: { email: 'somebody@harbour.example', role: 'viewer' },
  })
  const quota = await owner.own('/quota-requests', {
    method: 'POST',
    body: { requests_per_minute: 100, tokens_per_minute: 100, targets: ['canary'], use_case: 'canary' },
  })
  const xport = await owner.own('/exports', { method: 'POST' })
  const ids: Readonly<Record<string, string>> = {
    workspace_id: owner.workspaceId,
    member_id: memberId,
    key_id: key.id,
    budget_id: String(budget.json.id),
    invitation_id: String(invitation.json.id),
    quota_request_id: String(quota.json.id),
    export_id: String(xport.json.id),
  }
  return { owner, colleague, ids }
}

/** Every route with the ids of what it is about, in its own mode and asking for the other. */
async function tryAll(
  world: World,
  ids: Readonly<Record<string, string>>,
  send: (path: string, sent: Sent) => Promise<{ text: string }>,
) {
  const answers: string[] = []
  for (const { method, path, id } of await routesOf(world)) {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? ids.key_id ?? '')
    const body = id === 'transfer_workspace' ? { member_id: ids.member_id } : BODIES[id]
    for (const query of ['', '?mode=live', ...(id === 'remove_member' ? ['?keys=revoke', '?keys=keep'] : [])]) {
      if (id === 'get_document' || id === 'watch_requests') continue
      const sent = { method, headers: { 'if-match': '*' }, ...(body !== undefined && { body }) } as Sent
      const { text } = await send(filled + query, sent).catch((error: unknown) => ({ text: String(error) }))
      answers.push(`${id} ${text}`)
    }
  }
  return answers
}

export const MEMBER_ATTACKS: readonly Attack[] = [
  [
    'a token for test money changes nothing that is live by any route of the document, and reads nothing of it',
    async (world) => {
      const { owner, ids } = await wealthy(world)
      const send = await accountToken(world, owner, 'test')
      const before = await liveState(owner)
      const answers = await tryAll(world, ids, send)
      assert.equal(await liveState(owner), before)
      assert.deepEqual(
        answers.filter((answer) => answer.includes('canary')).map((answer) => answer.slice(0, 300)),
        [],
      )
    },
  ],
  [
    'owners are told of every way in which somebody becomes an admin or an owner',
    async (world) => {
      const [owner, guest] = [await newcomer(world), await newcomer(world, { name: 'Jo Larsen' })]
      const before = (await world.sandbox.mail(owner.email)).length
      const memberId = await joins(world, owner, guest, 'admin')
      await world.mailTo(owner.email, before + 1)
      for (const role of ['viewer', 'admin', 'owner'])
        await owner.own(`/members/${memberId}`, { method: 'PATCH', body: { role }, headers: { 'if-match': '*' } })
      const mail = await world.mailTo(owner.email, before + 2)
      assert.match(mail.text, /admin|owner/)
      assert.match(mail.text, new RegExp(guest.email))
    },
  ],
  [
    'nobody is removed while keys of theirs work that nobody decided on, also one that is made meanwhile',
    async (world) => {
      const [owner, guest] = [await newcomer(world), await newcomer(world)]
      const memberId = await joins(world, owner, guest, 'developer')
      const path = `/workspaces/${owner.workspaceId}`
      const make = () => guest.ask(`${path}/keys?mode=test`, { method: 'POST', body: { name: 'mine' } })
      assert.equal((await make()).status, 201)
      const undecided = await owner.own(`/members/${memberId}`, { method: 'DELETE' })
      assert.equal(undecided.status, 409, undecided.text)
      assert.match(undecided.text, /mine/)
      for (const keys of [`to:${memberId}`, 'to:00000000-0000-4000-8000-000000000000', 'all', '']) {
        const wrong = await owner.own(`/members/${memberId}?keys=${keys}`, { method: 'DELETE' })
        assert.ok(wrong.status >= 400 && wrong.status < 500, `${keys}: ${wrong.text}`)
      }
      const [removed, ...made] = await Promise.all([
        owner.own(`/members/${memberId}?keys=revoke`, { method: 'DELETE' }),
        ...Array.from({ length: 6 }, make),
      ])
      assert.equal(removed?.status, 200, removed?.text)
      for (const { status, json } of made) {
        if (status !== 201) continue
        const used = await askCalls(world.callsUrl, String(json.secret), '/v1/balance')
        assert.equal(used.status, 401, 'a key of somebody who is gone works')
      }
      const keys = listIn(await owner.own('/keys?mode=test&limit=100'))
      assert.deepEqual(
        keys.filter(({ revoked_at }) => revoked_at === null),
        [],
      )
      assert.match((await owner.own('/audit?limit=100')).text, /revoke/)
      await world.mailTo(owner.email, 2)
    },
  ],
  [
    'a developer lifts nothing that an admin fixed on their key, by changing it, rotating it or giving it away',
    async (world) => {
      const [owner, guest] = [await newcomer(world), await newcomer(world)]
      const memberId = await joins(world, owner, guest, 'developer')
      const fixed = { tags: ['team=search'], scopes: ['tag_detail'], member_id: memberId }
      const key = await newKey(owner, 'test', fixed)
      const path = `/workspaces/${owner.workspaceId}/keys/${key.id}`
      for (const body of [
        { tags: null },
        { tags: [] },
        { tags: ['team=other'] },
        { tags: ['other=search'] },
        { scopes: null },
        { scopes: ['tag_detail', 'rerank'] },
        { scopes: ['social'] },
        { scopes: ['account.read'] },
        { scopes: ['tag_detail', 'model:sandbox/text'] },
        { member_id: null },
        { member_id: await memberOf(owner, owner.email) },
      ]) {
        const { status, text } = await guest.ask(path, { method: 'PATCH', body, headers: { 'if-match': '*' } })
        assert.ok(status === 403 || status === 400, `${JSON.stringify(body)}: ${status} ${text}`)
      }
      const rotated = await guest.ask(`${path}/rotate`, { method: 'POST', body: {} })
      const { json } = await owner.own(`/keys/${key.id}`)
      assert.deepEqual([json.tags, json.scopes, json.member_id], [fixed.tags, fixed.scopes, memberId], rotated.text)
    },
  ],
  [
    'somebody who was removed reaches nothing of the workspace by a session, a token or an old invitation',
    async (world) => {
      const [owner, guest] = [await newcomer(world), await newcomer(world)]
      const memberId = await joins(world, owner, guest, 'admin')
      const path = `/workspaces/${owner.workspaceId}`
      const other = await signIn(world, guest.email, PASSWORD)
      const old = (await world.sandbox.mail(guest.email))
        .flatMap(({ links }) => links)
        .find((one) => one.includes('/invitations/'))
      assert.equal((await owner.own(`/members/${memberId}?keys=revoke`, { method: 'DELETE' })).status, 200)
      for (const route of ['', '/keys', '/members', '/audit', '/balance', '/exports'])
        assert.equal((await guest.ask(path + route)).status, 404, route)
      const { status } = await other.get(new URL(old ?? '').pathname)
      assert.notEqual(status, 200, 'an invitation works once')
      assert.equal((await guest.ask(path)).status, 404)
    },
  ],
]
