import { type Page, seeOther } from '../pages/page.ts'
import { parseReturnTo, withReturnTo } from '../pages/return-to.ts'
import type { Session } from '../people/sessions.ts'

type Request = {
  readonly params: ReadonlyMap<string, unknown>
  /** By the clock of PostgreSQL, as the times of sessions are. */
  readonly askedAt: Date
}

/**
 * Whether a client wants the person to prove once more who they are: with `prompt=login` after it asked, with `max_age` at most so many
 * seconds before.
 */
export function mustSignInAgain({ params, askedAt }: Request, { createdAt }: Pick<Session, 'createdAt'>): boolean {
  const isLogin = String(params.get('prompt') ?? '')
    .split(' ')
    .includes('login')
  const maxAge = params.get('max_age')
  if (!isLogin && maxAge === undefined) return false
  const seconds = isLogin ? 0 : Number(maxAge)
  return createdAt.getTime() < askedAt.getTime() - seconds * 1_000
}

/** Leads to the form, though somebody is signed in, and from there back. */
export function signInAgain(path: string, note: 'again' | 'change' = 'again'): Page {
  return seeOther(withReturnTo(`/sign-in?note=${note}`, parseReturnTo(path)))
}

/** When somebody proved who they are, as tokens say it. */
export function authTimeOf({ createdAt }: Pick<Session, 'createdAt'>): number {
  return Math.floor(createdAt.getTime() / 1_000)
}
