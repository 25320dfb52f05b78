import { memberOf } from '../catalogue/price.ts'

/** For whom a request says that it is made: the text that it gives, and what of that people are shown. */
export type NamedEndUser = { readonly text: string; readonly label: string }

/** Where protocols have it. Gemini's have no place for it. */
export function endUserIn(body: unknown): NamedEndUser | undefined {
  const given = [
    memberOf(body, 'safety_identifier'),
    memberOf(body, 'user'),
    memberOf(memberOf(body, 'metadata'), 'user_id'),
  ]
  const text = given.find((one) => typeof one === 'string' && one.trim() !== '')
  if (typeof text !== 'string') return undefined
  // What is too long is not looked into: whoever uses it refuses it.
  return text.length > END_USER_MOST ? { text, label: '' } : endUserNamed(text)
}

/** Characters that the name of an end user may have. */
export const END_USER_MOST = 512

const SESSION = /^user_(?<device>[0-9a-z]+)_account_(?<account>[0-9a-z-]*)_session_/i
/**
 * A person, by what a client says. Some say a device, an account and a session: the session is left out, so that a person stays one from
 * session to session, and where there is an account, from device to device.
 */
export function endUserNamed(given: string): NamedEndUser {
  const text = given.trim().normalize('NFC')
  const { account, device } = SESSION.exec(text)?.groups ?? {}
  if (device !== undefined) return account ? ofAccount(account) : ofDevice(device)
  const ids = objectIn(text)
  if (ids === undefined) return { text, label: text }
  const { account_uuid: accountId, device_id: deviceId } = ids
  if (typeof accountId === 'string' && accountId !== '') return ofAccount(accountId)
  if (typeof deviceId === 'string' && deviceId !== '') return ofDevice(deviceId)
  const rest = Object.entries(ids)
    .filter(([name]) => !name.toLowerCase().includes('session'))
    .sort(([one], [other]) => (one < other ? -1 : 1))
  const kept = rest.length === 0 ? text : JSON.stringify(Object.fromEntries(rest))
  return { text: kept, label: kept }
}

const ofAccount = (id: string): NamedEndUser => ({ text: `account ${id}`, label: `account ${id}` })
const ofDevice = (id: string): NamedEndUser => ({ text: `device ${id}`, label: `device ${id.slice(0, 12)}` })

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : undefined
  } catch {
    return undefined
  }
}
