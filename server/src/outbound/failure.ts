/** What strangers may be told. Of our network it says nothing: a name that leads into it looks like one that does not exist. */
const TEXTS = {
  closed: 'This installation does not connect to addresses that it is given.',
  url: 'The URL cannot be used.',
  busy: 'Too many requests to such addresses are under way. Try again later.',
  unreachable: 'The address could not be reached over the public internet.',
  timeout: 'The address did not answer in time.',
  too_large: 'The answer of the address is too large.',
  unreadable: 'The answer of the address broke off, is compressed, or is not proper HTTP.',
  redirect: 'The address answered with a redirect, which is not followed. Give the address that it leads to.',
  aborted: 'The request was given up on our side.',
} as const

export type OutboundReason = keyof typeof TEXTS

/** The only error that asking a stranger's address ends with. Its text may be shown; its cause is for the log alone. */
export class OutboundFailure extends Error {
  readonly reason: OutboundReason

  constructor(reason: OutboundReason, { text = TEXTS[reason], cause }: { text?: string; cause?: unknown } = {}) {
    super(text, { cause })
    this.name = 'OutboundFailure'
    this.reason = reason
  }
}
