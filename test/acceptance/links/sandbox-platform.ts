import assert from 'node:assert/strict'
import type pg from 'pg'
import type { Platform } from '../../../sandbox/src/upstreams/platform-state.ts'

/** What the sandbox's platform tells tests, and lets them order. */
export type Summary = ReturnType<Platform['summary']>

export type ShownSession = {
  readonly user: string
  readonly refreshes: number
  readonly refresh_reuses: number
  readonly revoked: boolean
}

export type ShownFollow = { readonly user: string; readonly target_user_id: string }

type Order = Partial<Readonly<Record<keyof Summary, number>>> & {
  readonly expire_access_tokens?: true
  readonly revoke_user?: string
}

export function platformOf(sandboxUrl: string) {
  const at = `${sandboxUrl}/control/platform`

  async function read<T>(part: string): Promise<T> {
    return (await (await fetch(at + part)).json()) as T
  }

  return {
    async turn(order: Order): Promise<void> {
      const answer = await fetch(at, { method: 'POST', body: JSON.stringify(order) })
      assert.equal(answer.status, 200, await answer.text())
    },
    summary: () => read<Summary>(''),
    follows: async () => (await read<{ follows: readonly ShownFollow[] }>('/follows')).follows,
    sessions: async () => (await read<{ sessions: readonly ShownSession[] }>('/sessions')).sessions,
  }
}

/** From now on the access token is too old, for us and for the platform that gave it. */
export async function expire(pool: pg.Pool, sandboxUrl: string, keyIds: readonly string[]): Promise<void> {
  await platformOf(sandboxUrl).turn({ expire_access_tokens: true })
  await pool.query('update link_sessions set access_until = clock_timestamp() where credential_id = any($1)', [keyIds])
}
