import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { z } from 'zod'
import { Random } from '../../sandbox/src/random.ts'
import { addressOf, type Key } from './people.ts'
import type { Upstream } from './upstream.ts'

/** Calls that act for users of a platform, who link their accounts again whenever they are asked to. */
export const FOLLOW_OPERATION = 'follow_user'
export const FOLLOW_PATH = '/apis/v1/social_a/follow_social_a'
const AUTH_PATH = '/apis/v1/social_a/auth_social_a'

/** Refreshes, and ends of what came of them: by the name of the call that needed the token. */
export const ABOUT_A_LINK = /\/oauth2\//

const started = z.object({ auth_url: z.string() })
const PATIENCE_MS = 15_000

/** Links an account to a key as its user does. Whatever goes wrong, the user is asked again at the next call. */
export async function linkAccount(url: string, key: Key): Promise<void> {
  const patience = { reset: true, headersTimeout: PATIENCE_MS, bodyTimeout: PATIENCE_MS }
  const headers = { authorization: `Bearer ${key.secret}`, 'x-forwarded-for': addressOf(key) }
  try {
    const asked = await request(url + AUTH_PATH, { ...patience, method: 'POST', headers })
    const { auth_url: page } = started.parse(await asked.body.json())
    const form = new URL(page).searchParams
    form.set('sandbox_user', `user_${key.id.replaceAll('-', '')}`)
    form.set('decision', 'allow')
    const decided = await request(page.split('?')[0] ?? '', {
      ...patience,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: String(form),
    })
    await decided.body.dump()
    await (await request(String(decided.headers.location), patience)).body.dump()
  } catch {
    // Nothing was linked, or nobody was told so.
  }
}

type Moods = { readonly stop: () => Promise<void> }

const CALM_MS = { least: 600, most: 2_000 }
const REFUSING_MS = { least: 300, most: 900 }
const NO_LIMIT = 1_000_000

/** The platform refuses every token for a while and goes on issuing them, or ends all that there are, by a seed. */
export function startMoods(seed: number, upstream: Pick<Upstream, 'process'>): Moods {
  const random = new Random(seed)
  let isOver = false

  /** A sandbox that is dead or asleep hears nothing of it, and one that has come back has forgotten. */
  async function turn(order: Readonly<Record<string, unknown>>): Promise<void> {
    const { url } = upstream.process()
    const body = JSON.stringify({ follow_limit: NO_LIMIT, ...order })
    const answer = request(`${url}/control/platform`, { method: 'POST', body, reset: true, headersTimeout: 2_000 })
    await answer.then(({ body: said }) => said.dump()).catch(() => {})
  }

  async function live(): Promise<void> {
    while (!isOver) {
      await turn(random.chance(0.4) ? { expire_access_tokens: true } : {})
      await delay(random.between(CALM_MS.least, CALM_MS.most))
      await turn({ follow_refusals: NO_LIMIT })
      await delay(random.between(REFUSING_MS.least, REFUSING_MS.most))
      await turn({ follow_refusals: 0 })
    }
  }

  const life = live()
  return {
    async stop() {
      isOver = true
      await life
      await turn({ follow_refusals: 0 })
    },
  }
}
