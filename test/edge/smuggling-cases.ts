import { KEY } from './probe-edge.ts'

/** Bytes that someone hostile, or broken, may send, and the statuses of all answers that may come back. */
export type Case = {
  readonly title: string
  readonly send: string | Buffer | readonly (string | Buffer)[]
  readonly answers: readonly number[]
  /** Whether the connection must be closed after the last answer; when it is not said, it must unless all is well. */
  readonly closed?: boolean
  /** How often the request that hides in the bytes may be run. */
  readonly smuggled?: number
}

export const HEAD = `Host: edge\r\nAuthorization: Bearer ${KEY}\r\n`
export const GOOD = `GET /apis/v1/probe HTTP/1.1\r\n${HEAD}\r\n`
const SMUGGLED = `GET /control/smuggled HTTP/1.1\r\n${HEAD}\r\n`
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const CHUNKS = '2\r\n{}\r\n0\r\n\r\n'

const get = (headers: string, target = '/apis/v1/probe', version = 'HTTP/1.1') =>
  `GET ${target} ${version}\r\n${HEAD}${headers}\r\n`
const post = (headers: string, body: string) =>
  `POST /apis/v1/probe/echo HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\n${headers}\r\n${body}`
const refused = (title: string, send: Case['send'], status = 400): Case => ({ title, send, answers: [status] })
const served = (title: string, send: Case['send'], answers = [200]): Case => ({ title, send, answers, closed: false })

const lengths: readonly Case[] = [
  refused('a length and chunks', post(`Content-Length: 6\r\n${CHUNKED}`, `0\r\n\r\n${SMUGGLED}`)),
  refused('chunks and a length', post(`${CHUNKED}Content-Length: 6\r\n`, `0\r\n\r\n${SMUGGLED}`)),
  refused('the same length twice', post('Content-Length: 2\r\nContent-Length: 2\r\n', '{}')),
  refused('two lengths', post('Content-Length: 2\r\nContent-Length: 80\r\n', `{}${SMUGGLED}`)),
  refused('a list of lengths', post('Content-Length: 2, 2\r\n', '{}')),
  refused('a length with a plus', post('Content-Length: +2\r\n', '{}')),
  refused('a negative length', post('Content-Length: -1\r\n', SMUGGLED)),
  refused('a hexadecimal length', post('Content-Length: 0x2\r\n', '{}')),
  refused('a length with an exponent', post('Content-Length: 2e0\r\n', '{}')),
  refused('a length with a fraction', post('Content-Length: 2.0\r\n', '{}')),
  refused('an empty length', post('Content-Length: \r\n', SMUGGLED)),
  refused('a length beyond 64 bits', post('Content-Length: 18446744073709551618\r\n', '{}')),
  refused('a length of two numbers', post('Content-Length: 2 2\r\n', '{}')),
  refused('a length with a NUL', post('Content-Length: 2\0\r\n', '{}')),
  refused('a length with a vertical tab', post('Content-Length: \x0b2\r\n', '{}')),
  refused('a length on a GET', get('Content-Length: 2\r\n')),
  served('a length with spaces around it', post('Content-Length:   2  \r\n', '{}')),
  served('a length with leading zeros', post('Content-Length: 0002\r\n', '{}')),
]

const encodings: readonly Case[] = [
  served('chunks', post(CHUNKED, CHUNKS)),
  served('chunks in another case', post('tRANSFER-eNCODING: cHUNKED\r\n', CHUNKS)),
  refused('chunks on a GET', get(CHUNKED)),
  refused('chunks in HTTP/1.0', post(CHUNKED, CHUNKS).replace('HTTP/1.1', 'HTTP/1.0')),
  refused('chunked twice in a list', post('Transfer-Encoding: chunked, chunked\r\n', CHUNKS)),
  refused('chunked in two headers', post(CHUNKED + CHUNKED, CHUNKS)),
  refused('chunked, then identity', post('Transfer-Encoding: chunked, identity\r\n', CHUNKS)),
  refused('gzip, then chunked', post('Transfer-Encoding: gzip, chunked\r\n', CHUNKS)),
  refused('two headers that end in chunked', post(`Transfer-Encoding: gzip\r\n${CHUNKED}`, CHUNKS)),
  refused('identity', post('Transfer-Encoding: identity\r\n', SMUGGLED)),
  refused('an encoding that only looks like chunked', post('Transfer-Encoding: xchunked\r\n', CHUNKS)),
  refused('a quoted encoding', post('Transfer-Encoding: "chunked"\r\n', CHUNKS)),
  refused('an encoding with a vertical tab', post('Transfer-Encoding: \x0bchunked\r\n', CHUNKS)),
  refused('an encoding with a parameter', post('Transfer-Encoding: chunked;q=1\r\n', CHUNKS)),
  refused('an empty encoding', post('Transfer-Encoding:\r\n', SMUGGLED)),
  refused('a space before the colon', post('Transfer-Encoding : chunked\r\n', CHUNKS)),
  refused('a tab before the colon', post('Content-Length\t: 2\r\n', '{}')),
  refused('an encoding on a folded line', post('Transfer-Encoding:\r\n chunked\r\n', CHUNKS)),
  refused('an encoding that hides behind a fold', post('X: a\r\n Transfer-Encoding: chunked\r\n', SMUGGLED)),
  refused('an encoding with a NUL', post('Transfer-Encoding: chunked\0\r\n', CHUNKS)),
]

const chunks: readonly Case[] = [
  served('a chunk with an extension', post(CHUNKED, '2;a=b\r\n{}\r\n0\r\n\r\n')),
  served('trailers', post(CHUNKED, '2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n')),
  refused('a trailer that would be a framing header', post(CHUNKED, '2\r\n{}\r\n0\r\nContent-Length: 80\r\n\r\n')),
  refused('a chunk size beyond 64 bits', post(CHUNKED, `FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n`)),
  refused('a chunk size that wraps around to 2', post(CHUNKED, `10000000000000002\r\n{}\r\n0\r\n\r\n`)),
  refused('a chunk size with a prefix', post(CHUNKED, '0x2\r\n{}\r\n0\r\n\r\n')),
  refused('a negative chunk size', post(CHUNKED, `-2\r\n${SMUGGLED}`)),
  refused('a chunk size with a plus', post(CHUNKED, '+2\r\n{}\r\n0\r\n\r\n')),
  refused('an empty chunk size', post(CHUNKED, '\r\n{}\r\n0\r\n\r\n')),
  refused('a chunk size before a space', post(CHUNKED, '2 \r\n{}\r\n0\r\n\r\n')),
  refused('a chunk size before a bare line feed', post(CHUNKED, '2\n{}\r\n0\r\n\r\n')),
  refused('an extension with a bare line feed', post(CHUNKED, '2;a\n{}\r\n0\r\n\r\n')),
  refused('a chunk longer than its size', post(CHUNKED, '1\r\n{}\r\n0\r\n\r\n')),
  refused('a chunk without its line end', post(CHUNKED, `2\r\n{}0\r\n\r\n${SMUGGLED}`)),
  refused('a request in place of the trailers', post(CHUNKED, `2\r\n{}\r\n0\r\n${SMUGGLED}`)),
  refused('20 KiB of extensions', post(CHUNKED, `2;${'a'.repeat(20_480)}\r\n{}\r\n0\r\n\r\n`), 413),
  refused('20 KiB of trailers', post(CHUNKED, `2\r\n{}\r\n0\r\nX: ${'a'.repeat(20_480)}\r\n\r\n`), 431),
  refused('chunks that never end', post(CHUNKED, '2\r\n{}\r\n'), 408),
  refused('a body that stops', post('Content-Length: 20\r\n', '{"a":'), 408),
]

const lines: readonly Case[] = [
  refused('HTTP/0.9', 'GET /control/smuggled\r\n\r\n'),
  refused('HTTP/1.2', get('', '/apis/v1/probe', 'HTTP/1.2')),
  refused('HTTP/2.0 in words', get('', '/apis/v1/probe', 'HTTP/2.0')),
  refused('HTTP/9.9', get('', '/apis/v1/probe', 'HTTP/9.9')),
  refused('a version in lower case', get('', '/apis/v1/probe', 'http/1.1')),
  refused('a version with two digits', get('', '/apis/v1/probe', 'HTTP/1.10')),
  refused('a space after the version', get('', '/apis/v1/probe', 'HTTP/1.1 ')),
  refused('another protocol', get('', '/apis/v1/probe', 'ICE/1.0')),
  refused('a method in lower case', GOOD.replace('GET', 'get')),
  refused('a method that nobody knows', GOOD.replace('GET', 'FOO')),
  refused('tabs in the request line', GOOD.replace('GET ', 'GET\t')),
  refused('a space before the request line', ` ${GOOD}`),
  refused('a space in the target', get('', '/a b')),
  refused('a NUL in the target', get('', '/a\0b')),
  refused('bytes beyond ASCII in the target', get('', '/\xc3\xa9')),
  refused('a fragment in the target', get('', '/apis/v1/probe#x')),
  refused('an absolute target', get('', 'http://other/control/smuggled')),
  refused('a host for a target', get('', 'other:80')),
  refused('an asterisk for a target', `OPTIONS * HTTP/1.1\r\n${HEAD}\r\n`),
  refused('no target', `GET  HTTP/1.1\r\n${HEAD}\r\n`),
  refused('CONNECT', `CONNECT other:443 HTTP/1.1\r\n${HEAD}\r\n${SMUGGLED}`),
  refused('a target of 9,000 bytes', get('', `/${'a'.repeat(9_000)}`), 414),
  { title: 'an HTTP/2 preface', send: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', answers: [400], closed: true },
  { title: 'a TLS hello', send: Buffer.from('16030100ff010000fb0303', 'hex'), answers: [400], closed: true },
  served('an empty line before the request line', `\r\n${GOOD}`),
]

const headers: readonly Case[] = [
  refused('bare line feeds', GOOD.replaceAll('\r\n', '\n')),
  refused('one bare line feed', get('X: a\nY: b\r\n')),
  refused('a bare carriage return', get('X: a\rY: b\r\n')),
  refused('two carriage returns', get('X: a\r\r\n')),
  refused('a bare line feed at the end', `GET /apis/v1/probe HTTP/1.1\r\n${HEAD}\n${SMUGGLED}`),
  refused('no host', 'GET /apis/v1/probe HTTP/1.1\r\n\r\n'),
  refused('two hosts', get('Host: other\r\n')),
  refused('a host that is a list', get('').replace('edge', 'edge, other')),
  refused('a host with a path', get('').replace('edge', 'edge/x')),
  refused('a host with a user', get('').replace('edge', 'a@edge')),
  refused('a line without a colon', get('X\r\n')),
  refused('a header without a name', get(': x\r\n')),
  refused('a name with a space', get('X Y: z\r\n')),
  refused('a name with a NUL', get('X\0: z\r\n')),
  refused('a name beyond ASCII', get('X\xe9: z\r\n')),
  refused('a value with a NUL', get('X: a\0b\r\n')),
  refused('a first line that is folded', `GET /apis/v1/probe HTTP/1.1\r\n X: a\r\n${HEAD}\r\n`),
  refused('two authorizations', get(`Authorization: Bearer other\r\n`)),
  refused('the same authorization twice', get(`AUTHORIZATION: Bearer ${KEY}\r\n`)),
  refused('two content types', post('Content-Type: text/plain\r\nContent-Length: 2\r\n', '{}')),
  refused('two idempotency keys', post('Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n', '{}')),
  refused('two keys', get('x-api-key: a\r\nx-api-key: b\r\n')),
  refused('101 headers', get('X: 1\r\n'.repeat(99)), 431),
  refused('a header of 17 KiB', get(`X: ${'a'.repeat(17 * 1024)}\r\n`), 431),
  refused('100 KiB of headers', get(`X: ${'a'.repeat(1_000)}\r\n`.repeat(100)), 431),
  refused('a __proto__ header', get('__proto__: x\r\n')),
  refused('two __proto__ headers', get('__proto__: x\r\n__PROTO__: y\r\n')),
  served('headers with the names of an object', get('constructor: x\r\nhasOwnProperty: y\r\ntoString: z\r\n')),
  refused('headers that never end', `GET / HTTP/1.1\r\n${HEAD}`, 408),
  served('an offer to upgrade to HTTP/2', get('Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n')),
  served('an offer to upgrade to WebSocket', get('Connection: Upgrade\r\nUpgrade: websocket\r\n')),
]

const expectations: readonly Case[] = [
  served('the expectation to continue', post('Expect: 100-continue\r\nContent-Length: 2\r\n', '{}'), [100, 200]),
  refused('another expectation', get('Expect: 200-ok\r\n'), 417),
  refused('two expectations in one', get('Expect: 100-continue, x\r\n'), 417),
  refused('the same expectation twice', get('Expect: 100-continue\r\nExpect: 100-continue\r\n')),
  refused(
    'an expectation without a credential',
    post('Expect: 100-continue\r\nContent-Length: 90\r\n', '').replace(KEY, 'x'),
    401,
  ),
  refused('an expectation with too large a body', post('Expect: 100-continue\r\nContent-Length: 9000000\r\n', ''), 413),
]

const slow = get('', '/apis/v1/probe/slow?ms=150')
const unknown = (body: string) => post(`Content-Length: ${body.length}\r\n`, body).replace(KEY, 'x')

const pipelines: readonly Case[] = [
  served('two requests at once', GOOD + GOOD, [200, 200]),
  served('two requests, the first of them slow', slow + GOOD, [200, 200]),
  served('a request in many pieces', GOOD.match(/[\s\S]{1,7}/g) ?? []),
  { title: 'the second of three is broken', send: GOOD + GOOD.replace('GET', 'G@T') + SMUGGLED, answers: [200, 400] },
  { title: 'rubbish after a request', send: `${GOOD}rubbish\r\n\r\n${SMUGGLED}`, answers: [200, 400] },
  { title: 'rubbish after a slow request', send: `${slow}rubbish\r\n\r\n${SMUGGLED}`, answers: [200, 400] },
  { title: 'a refused request before another', send: get('Host: other\r\n') + SMUGGLED, answers: [400] },
  {
    title: 'a refused request between a slow one and another',
    send: slow + get('Host: other\r\n') + SMUGGLED,
    answers: [200, 400],
  },
  {
    title: 'a request behind one whose route ends the connection',
    send: get('', '/apis/v1/probe/close') + SMUGGLED,
    answers: [200],
    closed: true,
  },
  { title: 'an unreadable request before another', send: `rubbish\r\n\r\n${SMUGGLED}`, answers: [400] },
  {
    title: 'a broken body behind a slow request',
    send: slow + post(CHUNKED, `x\r\n${SMUGGLED}`),
    answers: [200, 400],
  },
  {
    title: 'the last request and another',
    send: get('Connection: close\r\n') + SMUGGLED,
    answers: [200],
    closed: true,
  },
  {
    title: 'a slow last request and another',
    send: slow.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n') + SMUGGLED,
    answers: [200],
    closed: true,
  },
  {
    title: 'HTTP/1.0 and another request',
    send: get('', '/apis/v1/probe', 'HTTP/1.0') + SMUGGLED,
    answers: [200],
    closed: true,
  },
  served('a request in the body of one that nobody sent', unknown(SMUGGLED), [401]),
  served('a request in the body of one that was refused, and another', unknown(SMUGGLED) + GOOD, [401, 200]),
  served('a request in a body of the wrong type', post(`Content-Length: ${SMUGGLED.length}\r\n`, SMUGGLED), [400]),
  {
    title: 'broken chunks after they were refused',
    send: [post(CHUNKED, '2\r\n{}\r\n').replace(KEY, 'x'), `x\r\n${SMUGGLED}`],
    answers: [401],
    closed: true,
  },
  { title: 'more requests than may wait', send: slow + GOOD.repeat(200), answers: Array(34).fill(200), closed: true },
  {
    ...served('a request behind a body that ends early', post('Content-Length: 2\r\n', `{}${SMUGGLED}`), [200, 200]),
    smuggled: 1,
  },
]

export const CASES: readonly Case[] = [
  ...lengths,
  ...encodings,
  ...chunks,
  ...lines,
  ...headers,
  ...expectations,
  ...pipelines,
]
