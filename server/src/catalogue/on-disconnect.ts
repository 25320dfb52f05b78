/** What becomes of a stream whose caller has left: it is heard out, or given up where that stops its upstream's meter. */
export const ON_DISCONNECT = ['finish', 'cancel'] as const
export type OnDisconnect = (typeof ON_DISCONNECT)[number]

/** Where neither the request nor its key says. */
export const DEFAULT_ON_DISCONNECT: OnDisconnect = 'cancel'
