import { randomBytes } from 'node:crypto'
import { type Page, Ring } from '../ring.ts'
import type { User } from './platform-user.ts'

/** What an app may do in a user's name, from the click that allowed it on. */
export type Session = Permission & {
  readonly n: number
  readonly createdAtMs: number
  readonly codeExpiresAtMs: number
  codeUses: number
  /** Of the newest access token. */
  accessExpiresAtMs: number | undefined
  refreshes: number
  refreshReuses: number
  revokedBy: RevokedBy | undefined
}

export type Permission = {
  readonly user: User
  readonly scopes: readonly string[]
  readonly redirectUri: string
  readonly challenge: string
}

export type RevokedBy = 'client' | 'code_reuse' | 'refresh_reuse' | 'control'

/** A code or a token, and whose it is. */
export type Secret = {
  readonly kind: Kind
  readonly session: Session
  expiresAtMs: number
  /** Codes and refresh tokens are good for one use. */
  isSpent: boolean
}

export type Tokens = { readonly access: string; readonly refresh: string | undefined }

/** A session as tests see it, without its secrets. */
export type ShownSession = {
  readonly n: number
  readonly user: string
  readonly user_id: string
  readonly scopes: readonly string[]
  readonly created_at_ms: number
  readonly code_expires_at_ms: number
  readonly code_uses: number
  readonly access_expires_at_ms: number | null
  readonly refreshes: number
  readonly refresh_reuses: number
  readonly revoked: boolean
  readonly revoked_by: RevokedBy | null
}

type Kind = keyof typeof PREFIXES

/** So that a secret that has leaked can be searched for. */
const PREFIXES = { code: 'code_canary_', access: 'at_canary_', refresh: 'rt_canary_' } as const
const RANDOM_BYTES = 24
const SESSIONS_LIMIT = 100_000
const SECRETS_LIMIT = 500_000
export const OFFLINE_SCOPE = 'offline.access'

/** Who has allowed what, and the newest codes and tokens for it; spent ones too, since using one again tells of a thief. */
export class PlatformSessions {
  readonly #sessions: Ring<Session>
  readonly #secrets = new Map<string, Secret>()
  readonly #secretsLimit: number
  #drawn = 0

  constructor(sessionsLimit: number = SESSIONS_LIMIT, secretsLimit: number = SECRETS_LIMIT) {
    this.#sessions = new Ring(sessionsLimit)
    this.#secretsLimit = secretsLimit
  }

  /** Never the same twice, and nothing that could be guessed. */
  draw(kind: Kind): string {
    this.#drawn += 1
    return `${PREFIXES[kind]}${this.#drawn.toString(36)}_${randomBytes(RANDOM_BYTES).toString('base64url')}`
  }

  drawTokens({ scopes }: Session): Tokens {
    return { access: this.draw('access'), refresh: scopes.includes(OFFLINE_SCOPE) ? this.draw('refresh') : undefined }
  }

  begin(permission: Permission, code: string, nowMs: number, codeExpiresAtMs: number): void {
    const session: Session = {
      ...permission,
      n: this.#sessions.next,
      createdAtMs: nowMs,
      codeExpiresAtMs,
      codeUses: 0,
      accessExpiresAtMs: undefined,
      refreshes: 0,
      refreshReuses: 0,
      revokedBy: undefined,
    }
    this.#sessions.add(session)
    this.#keep(code, { kind: 'code', session, expiresAtMs: codeExpiresAtMs, isSpent: false })
  }

  give(session: Session, { access, refresh }: Tokens, expiresAtMs: number): void {
    session.accessExpiresAtMs = expiresAtMs
    this.#keep(access, { kind: 'access', session, expiresAtMs, isSpent: false })
    if (refresh !== undefined)
      this.#keep(refresh, { kind: 'refresh', session, expiresAtMs: Number.POSITIVE_INFINITY, isSpent: false })
  }

  find(kind: Kind, text: string): Secret | undefined {
    const secret = this.#secrets.get(text)
    return secret?.kind === kind ? secret : undefined
  }

  expireAccessTokens(nowMs: number): void {
    for (const secret of this.#secrets.values()) {
      if (secret.kind !== 'access' || secret.expiresAtMs <= nowMs) continue
      secret.expiresAtMs = nowMs
      secret.session.accessExpiresAtMs = nowMs
    }
  }

  revokeUser(username: string): void {
    for (const { session } of this.#secrets.values()) if (session.user.username === username) revoke(session, 'control')
  }

  /** In the order in which they were allowed. */
  list(since: number): Page<ShownSession> {
    const { items, ...rest } = this.#sessions.read(since)
    return { items: items.map(shown), ...rest }
  }

  /** Forgets everything but the numbers, which go on. */
  clear(): void {
    this.#sessions.empty()
    this.#secrets.clear()
  }

  #keep(text: string, secret: Secret): void {
    this.#secrets.set(text, secret)
    for (const oldest of this.#secrets.keys()) {
      if (this.#secrets.size <= this.#secretsLimit) return
      this.#secrets.delete(oldest)
    }
  }
}

/** Ends a session with all its tokens. Who ended it first is remembered. */
export function revoke(session: Session, by: RevokedBy): void {
  session.revokedBy ??= by
}

export function isGood({ session, expiresAtMs, isSpent }: Secret, nowMs: number): boolean {
  return !isSpent && nowMs < expiresAtMs && session.revokedBy === undefined
}

function shown(session: Session): ShownSession {
  return {
    n: session.n,
    user: session.user.username,
    user_id: session.user.id,
    scopes: session.scopes,
    created_at_ms: session.createdAtMs,
    code_expires_at_ms: session.codeExpiresAtMs,
    code_uses: session.codeUses,
    access_expires_at_ms: session.accessExpiresAtMs ?? null,
    refreshes: session.refreshes,
    refresh_reuses: session.refreshReuses,
    revoked: session.revokedBy !== undefined,
    revoked_by: session.revokedBy ?? null,
  }
}
