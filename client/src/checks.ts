/** What would be sent wrong, or not at all, is refused here: nothing can have come of it. No message quotes a secret. */

/** The longest that timers take: beyond it they ring at once. */
export const LONGEST_MS = 2_147_483_647

export function requireWhole(options: Readonly<Record<string, number | undefined>>, least: number): void {
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && (!Number.isInteger(value) || value < least || value > LONGEST_MS))
      throw new TypeError(`${name} must be a whole number from ${least} to ${LONGEST_MS}.`)
}

const VISIBLE = /^[!-~]+$/

export function requireKey(apiKey: string): void {
  if (!apiKey) throw new TypeError('apiKey is missing: give the key of the gateway.')
  if (!VISIBLE.test(apiKey))
    throw new TypeError('apiKey has a space, a line break or another character that no key has.')
}

const KEY_MOST = 255

export function requireIdempotencyKey(key: string): void {
  if (!VISIBLE.test(key) || key.length > KEY_MOST)
    throw new TypeError(`An idempotency key has 1 to ${KEY_MOST} visible characters of ASCII.`)
}

/** Where plain http leaves no machine. */
const OWN_MACHINE = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/

/** Without the slash at its end. */
export function baseUrlOf(text: string): string {
  const { protocol, hostname, username, password, search, hash, href } = new URL(text)
  if (!/^https?:$/.test(protocol) || username + password + search + hash !== '')
    throw new TypeError('baseUrl must be an http or https address, without user, password, query and fragment.')
  if (protocol === 'http:' && !OWN_MACHINE.test(hostname))
    throw new TypeError(
      'baseUrl must be https: by plain http everybody on the way reads your key. Only http://localhost and 127.0.0.1 are allowed.',
    )
  return href.replace(/\/+$/, '')
}

/** Some browsers have no `randomUUID` on pages that came by plain http. */
export function newKey(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  return [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('-')
}
