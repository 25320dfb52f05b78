import type { Received } from '../upstreams/raw-upstream.ts'

/** The rules of docs/hostile-upstreams.md, by their names there. */
export type Rule =
  | 'not reached'
  | 'broken off'
  | 'not as promised'
  | 'withheld'
  | 'counted'
  | 'beyond the hold'
  | 'passed on unpaid'
  | 'about our account'
  | 'served'

/** What an upstream does, and by which rule the two operations answer to it. Null where it can't do that. */
export type Behaviour = {
  readonly name: string
  readonly rerank: Rule | null
  readonly reseller: Rule | null
  /** Of the answer, where it is not what the rule says in general. */
  readonly status?: number
}

/** What the sandbox has words for. */
export type Worded = Behaviour & { readonly directives: readonly string[]; readonly isSlow: boolean }

const worded = (directives: string, rerank: Rule | null, reseller: Rule | null, status?: number): Worded => ({
  name: directives,
  // These last as long as the call may.
  isSlow: /hang|drip|60000|wrong-length=9/.test(directives),
  directives: directives.split(' '),
  rerank,
  reseller,
  ...(status !== undefined && { status }),
})

const BIG = 1_024 ** 3

export const WORDED: readonly Worded[] = [
  worded('hang=accept', 'broken off', 'broken off'),
  worded('hang=headers', 'broken off', 'broken off'),
  worded('hang=body', 'broken off', 'broken off'),
  worded('reset=before-headers', 'broken off', 'broken off'),
  worded('reset=in-body', 'broken off', 'broken off'),
  worded('close-early', 'broken off', 'broken off'),
  worded('truncate', 'broken off', 'broken off'),
  worded('truncate chunked', 'broken off', 'broken off'),
  worded('drip=40', 'broken off', 'broken off'),
  worded('delay=60000', 'broken off', 'broken off'),
  worded('slow-first-byte=60000', 'broken off', 'broken off'),
  worded('wrong-length=9', 'broken off', 'broken off'),
  worded('dup-headers=content-length', 'broken off', 'broken off'),
  worded(`big=${BIG}`, 'broken off', 'broken off'),
  worded(`big=${BIG} chunked`, 'broken off', 'broken off'),
  worded('continue=1', 'broken off', 'broken off'),
  worded('continue=10000', 'broken off', 'broken off'),
  worded('wrong-length=-7', 'not as promised', 'withheld'),
  worded('gzip-bomb', 'not as promised', 'withheld'),
  worded('garbage', 'not as promised', 'withheld'),
  worded('html', 'not as promised', 'withheld'),
  worded('empty', 'not as promised', 'withheld'),
  worded('usage=-5', 'not as promised', null),
  worded('usage=1.5', 'not as promised', null),
  worded('usage=NaN', 'not as promised', null),
  worded('usage=null', 'not as promised', null),
  worded('usage=string', 'not as promised', null),
  worded('usage=huge', 'not as promised', null),
  worded('usage=9223372036854775808', 'not as promised', null),
  worded('no-usage', 'counted', null),
  worded('tokens=1000000', 'beyond the hold', null),
  worded('tokens=1000000000000', 'beyond the hold', null),
  worded('code-as-string', null, 'passed on unpaid'),
  worded('code=400', null, 'passed on unpaid'),
  worded('status=500', 'passed on unpaid', 'passed on unpaid', 500),
  worded('status=404', 'passed on unpaid', 'passed on unpaid', 404),
  worded('status=204', 'passed on unpaid', 'withheld', 204),
  worded('status=502 html', 'passed on unpaid', 'passed on unpaid', 502),
  worded('code=400 redirect=http://127.0.0.1:1/', null, 'passed on unpaid', 302),
  worded('status=307 redirect=http://127.0.0.1:1/', 'passed on unpaid', 'served', 307),
  worded('status=429', 'about our account', 'about our account', 429),
  worded('status=401', 'about our account', 'about our account', 503),
  worded('status=402', 'about our account', 'about our account', 503),
  worded('status=403', 'about our account', 'about our account'),
  worded('code=200 status=500', null, 'passed on unpaid', 500),
  worded('delay=200 chunked', 'served', 'served'),
  worded('slow-first-byte=200', 'served', 'served'),
  worded('dup-headers', 'served', 'served'),
  worded('content-type=text/html', 'served', 'served'),
  worded('content-type=application/octet-stream;charset=utf-16', 'served', 'served'),
]

/** What goes over the wire byte for byte. */
export type Raw = Behaviour & { readonly answer: (request: Received) => void }

const PAID = '{"code":200,"results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":5}}'

const lines = (...all: readonly string[]) => all.join('\r\n')

function message(body: string, status = '200 OK', ...headers: readonly string[]): string {
  return lines(`HTTP/1.1 ${status}`, `content-length: ${Buffer.byteLength(body)}`, ...headers, '', body)
}

const raw = (name: string, bytes: string, rerank: Rule | null, reseller: Rule | null, status?: number): Raw => ({
  name,
  rerank,
  reseller,
  ...(status !== undefined && { status }),
  answer: ({ socket }) => void socket.write(Buffer.from(bytes, 'latin1')),
})

const thenClosed = ({ answer, ...rest }: Raw): Raw => ({
  ...rest,
  answer(request) {
    answer(request)
    request.socket.end()
  },
})

const manyHeaders = Array.from({ length: 201 }, (_, at) => `x-h-${at}: 1`)
const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`

const EARLY = lines('HTTP/1.1 103 Early Hints', 'link: </a>; rel=preload', '', '')

export const RAW: readonly Raw[] = [
  raw('16 early hints', EARLY.repeat(16) + message(PAID), 'served', 'served'),
  raw('17 early hints', EARLY.repeat(17) + message(PAID), 'broken off', 'broken off'),
  raw('no HTTP at all', 'SSH-2.0-OpenSSH_9.9\r\n', 'broken off', 'broken off'),
  raw('nothing but noise', '\u0000\u0001\u0002\u0016\u0003\r\n\r\n', 'broken off', 'broken off'),
  raw('another protocol', lines('HTTP/1.1 101 Switching Protocols', 'upgrade: x', '', ''), 'broken off', 'broken off'),
  raw('more than 200 headers', message(PAID, '200 OK', ...manyHeaders), 'broken off', 'broken off'),
  raw('a header of 64 KiB', message(PAID, '200 OK', `x: ${'y'.repeat(65_536)}`), 'broken off', 'broken off'),
  raw('a negative length', lines('HTTP/1.1 200 OK', 'content-length: -1', '', PAID), 'broken off', 'broken off'),
  raw('a length that is a text', lines('HTTP/1.1 200 OK', 'content-length: all', '', PAID), 'broken off', 'broken off'),
  raw(
    'a length and chunks',
    lines('HTTP/1.1 200 OK', 'content-length: 3', 'transfer-encoding: chunked', '', '5', 'abcde', '0', '', ''),
    'broken off',
    'broken off',
  ),
  raw(
    'chunks of no size',
    lines('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', 'zz', PAID, ''),
    'broken off',
    'broken off',
  ),
  thenClosed(
    raw(
      'chunks without an end',
      lines('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', PAID.length.toString(16), PAID, ''),
      'broken off',
      'broken off',
    ),
  ),
  raw('a status of two digits', message(PAID, '99 Odd'), 'broken off', 'broken off'),
  raw('a status beyond 599', message(PAID, '999 Odd'), 'not as promised', 'not as promised'),
  raw('a status beyond 599, unpaid', message('{}', '600 Odd'), 'not as promised', 'not as promised'),
  raw('null', message('null'), 'not as promised', 'passed on unpaid'),
  raw('a number', message('5'), 'not as promised', 'passed on unpaid'),
  raw('JSON of 200,000 levels', message(deep), 'not as promised', 'passed on unpaid'),
  raw('JSON in UTF-16', message(Buffer.from(PAID, 'utf16le').toString('latin1')), 'not as promised', 'withheld'),
  raw('results beyond the documents', message(PAID.replace('"index":0', '"index":2')), 'not as promised', 'served'),
  raw('a result before the first', message(PAID.replace('"index":0', '"index":-1')), 'not as promised', 'served'),
  raw('a score beyond all numbers', message(PAID.replace('0.5', '1e999')), 'not as promised', 'served'),
  raw(
    'a usage inherited',
    message(PAID.replace('{"total_tokens":5}', '{"__proto__":{"total_tokens":5}}')),
    'not as promised',
    'served',
  ),
  raw('a code that is true', message(PAID.replace('200', 'true')), 'served', 'passed on unpaid'),
  raw('a code that is almost 200', message(PAID.replace('200', '200.5')), 'served', 'passed on unpaid'),
  raw('bytes after its end', `${message(PAID)}HTTP/1.1 200 OK\r\n\r\nmore of it`, 'served', 'served'),
  thenClosed(raw('no length, and closed at its end', lines('HTTP/1.1 200 OK', '', PAID), 'served', 'served')),
  thenClosed(raw('HTTP/1.0', lines('HTTP/1.0 200 OK', '', PAID), 'served', 'served')),
]
