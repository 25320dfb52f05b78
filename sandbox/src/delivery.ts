/** How an answer goes wrong on its way. */
export type Delivery = {
  interims: number
  delayMs: number
  firstByteMs: number
  dripMs: number
  isChunked: boolean
  /** Added to the true Content-Length. */
  lengthOff: number
  /** Beyond what the answer needs. */
  paddingBytes: number
  hang: 'never' | 'accept' | 'headers' | 'body'
  reset: 'never' | 'before-headers' | 'in-body'
  close: 'never' | 'before-headers' | 'in-body'
  /** Where in the body it breaks off or hangs. A first delta there is only in a stream. */
  breaksAfter: 'half' | 'first-delta'
}
