/** What a body says about a refusal, in whichever of the gateway's dialects. Whoever else answered may have said anything. */
export type ErrorBody = {
  readonly code: string | undefined
  readonly message: string | undefined
  readonly members: Readonly<Record<string, unknown>>
}

const NOTHING: ErrorBody = { code: undefined, message: undefined, members: {} }

/** Read only where the status is that of an error, and where the body calls itself JSON. */
export function errorIn(status: number, headers: Headers, text: string): ErrorBody {
  if (status < 400 || !isJson(headers)) return NOTHING
  const body = parse(text)
  const { error, code, detail: problem } = asRecord(body)
  // RFC 9457, in which the account API refuses.
  if (error === undefined && typeof problem === 'string')
    return { code: asText(code), message: problem, members: asRecord(body) }
  if (typeof error === 'string') return { code: asText(code), message: error, members: {} }
  const members = asRecord(error)
  // One dialect has its code among the details, one in an object of them.
  const details = members.details
  const detail = asRecord(Array.isArray(details) ? details[0] : details)
  return {
    code: asText(detail.reason) ?? asText(detail.error_code) ?? asText(members.code) ?? asText(code),
    message: asText(members.message),
    members: { ...asRecord(detail.metadata), ...detail, ...members },
  }
}

export function isJson(headers: Headers): boolean {
  return /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(headers.get('content-type') ?? '')
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}

export function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
