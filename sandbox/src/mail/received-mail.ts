/** One message as it came, as far as it can be read. */
export type ReceivedMail = {
  readonly n: number
  readonly at_ms: number
  /** Whom the client named while it handed it over; the headers can say anything else. */
  readonly envelope: { readonly from: string; readonly to: readonly string[] }
  readonly message_id: string | null
  readonly from: readonly Correspondent[]
  readonly to: readonly Correspondent[]
  readonly subject: string
  /** All of them, in their order, decoded by nobody. */
  readonly headers: readonly (readonly [name: string, line: string])[]
  readonly text: string
  readonly html: string | null
  /** Addresses of pages in the text. */
  readonly links: readonly string[]
  readonly bytes: number
  /** Whether the client was told that it was taken. */
  readonly acknowledged: boolean
}

export type Correspondent = { readonly name: string; readonly address: string }

export type Envelope = ReceivedMail['envelope']
