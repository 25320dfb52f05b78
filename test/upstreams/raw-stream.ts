/** What an upstream writes byte by byte whose answer is a stream of events, in chunks. */
export const EVENTS_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'

export const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

export const LAST_CHUNK = '0\r\n\r\n'
