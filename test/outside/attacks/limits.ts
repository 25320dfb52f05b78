import assert from 'node:assert/strict'
import { request } from 'undici'
import { askAnybody } from '../../acceptance/installation.ts'
import { authorized, createOauthClient, exchange, newPkce, registered } from '../../oauth/client.ts'
import { type Attack, newcomer, newKey, type Person, type World } from './world.ts'

/** What Free gives a key a minute, and how many keys: none of an account's ways gives more than the product. */
const [REQUESTS, KEYS, AT_ONCE] = [60, 10, 5]

/** Uses a key up; how many requests were admitted. */
async function useUp(world: World, secret: string): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: REQUESTS + 5 }, () => askAnybody(world.callsUrl, secret, '/v1/balance')),
  )
  return answers.filter(({ status }) => status === 200).length
}

const remove = (person: Person, id: string) => person.own(`/keys/${id}`, { method: 'DELETE' })

/** Makes keys and ends them, in some way, for as long as that is allowed. */
async function spent(
  world: World,
  person: Person,
  end: (id: string) => Promise<unknown>,
  body: () => object = () => ({}),
) {
  let admitted = 0
  for (let n = 0; n < 3 * KEYS; n += 1) {
    const made = await person.own('/keys?mode=test', { method: 'POST', body: { name: 'one more', ...body() } })
    if (made.status !== 201) {
      assert.ok([409, 429].includes(made.status), made.text)
      break
    }
    admitted += await useUp(world, String(made.json.secret))
    await end(String(made.json.id))
  }
  return admitted
}

const SLOW = 'a long story sandbox:output-tokens=400 sandbox:delta-ms=50'

/** Begins a stream, reads its first bytes, and leaves; the status that it got. */
async function abandon(world: World, secret: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const leaving = new AbortController()
  const { statusCode, body } = await request(`${world.callsUrl}/v1/chat/completions`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      model: 'sandbox/text',
      stream: true,
      max_tokens: 500,
      messages: [{ role: 'user', content: SLOW }],
    }),
  })
  body.on('error', () => {})
  if (statusCode === 200) await new Promise((resolve) => body.once('data', resolve))
  leaving.abort()
  return statusCode
}

export const LIMIT_ATTACKS: readonly Attack[] = [
  [
    'keys that are made anew, revoked, give an account no more than the keys of its tier',
    async (world) => {
      const person = await newcomer(world)
      const admitted = await spent(world, person, (id) => remove(person, id))
      assert.ok(admitted <= REQUESTS * KEYS, `${admitted} requests`)
    },
  ],
  [
    'keys that expire as soon as they are used up give no more either',
    async (world) => {
      const person = await newcomer(world)
      const soon = () => ({ expires_at: new Date(Date.now() + 1_500).toISOString() })
      const admitted = await spent(world, person, () => new Promise((resolve) => setTimeout(resolve, 1_600)), soon)
      assert.ok(admitted <= REQUESTS * KEYS, `${admitted} requests`)
    },
  ],
  [
    'keys that their leaked secret ends give no more either',
    async (world) => {
      const person = await newcomer(world)
      const secrets = new Map<string, string>()
      let admitted = 0
      for (let n = 0; n < 2 * KEYS; n += 1) {
        const made = await person.own('/keys?mode=test', { method: 'POST', body: { name: 'leaked' } })
        if (made.status !== 201) break
        const secret = String(made.json.secret)
        secrets.set(String(made.json.id), secret)
        admitted += await useUp(world, secret)
        await request(`${world.url}/account/v1/revoke-secret`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': `leak-${n}-${secret.slice(-8)}` },
          body: JSON.stringify({ secret }),
        }).then(({ body }) => body.dump())
      }
      assert.ok(admitted <= REQUESTS * KEYS, `${admitted} requests`)
    },
  ],
  [
    'a key that is rotated keeps what it has used',
    async (world) => {
      const person = await newcomer(world)
      let { id, secret } = await newKey(person, 'test')
      let admitted = 0
      for (let n = 0; n < 4; n += 1) {
        admitted += await useUp(world, secret)
        const rotated = await person.own(`/keys/${id}/rotate`, { method: 'POST', body: { overlap_seconds: 0 } })
        secret = String(rotated.json.secret)
      }
      assert.ok(admitted <= REQUESTS, `${admitted} requests`)
    },
  ],
  [
    'grants to clients, made and revoked anew, give an account no more than its keys',
    async (world) => {
      const person = await newcomer(world)
      const client = createOauthClient(world)
      let admitted = 0
      for (let n = 0; n < 2 * KEYS; n += 1) {
        const [clientId, pkce] = [await registered(createOauthClient(world)), newPkce()]
        const changed = { resource: world.callsUrl, scope: 'calls' }
        const code = await authorized(person.browser, { clientId, pkce, changed }, { mode: 'test', rate: '60' }).catch(
          () => null,
        )
        if (code === null) break
        const { json } = await exchange(client, { clientId, code, pkce })
        admitted += await useUp(world, String(json.access_token))
        await client.post('/oauth/revoke', { client_id: clientId, token: String(json.refresh_token) })
      }
      assert.ok(admitted <= REQUESTS * KEYS, `${admitted} requests`)
    },
  ],
  [
    'streams that are begun and left take no more of providers at once than twice what the key may',
    async (world) => {
      const person = await newcomer(world)
      const { secret } = await newKey(person, 'test')
      const statuses: number[] = []
      for (let n = 0; n < 24; n += 1)
        statuses.push(await abandon(world, secret, { 'x-farebox-on-disconnect': 'finish' }))
      const begun = statuses.filter((status) => status === 200).length
      assert.ok(begun > AT_ONCE, `${begun}: a place is free when its caller has gone`)
      assert.ok(begun <= 2 * AT_ONCE, `${begun} were under way: ${statuses}`)
    },
  ],
]
