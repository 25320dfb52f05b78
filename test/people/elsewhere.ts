/** What leads, or could lead, elsewhere. */
export const ELSEWHERE = [
  ...['', ' ', '/', '//', '//evil.example', '///evil.example', '////evil.example/%2f..', '/\\evil.example', '\\/evil.example'],
  ...['\\\\evil.example', '/\\/evil.example', '/%2f/evil.example', '/%2fevil.example', '/%5cevil.example', '%2f%2fevil.example'],
  ...['https://evil.example', 'HTTPS://evil.example', 'http:evil.example', 'https:/evil.example', 'https:evil.example'],
  ...['javascript:alert(1)', 'JavaScript:alert(1)', 'data:text/html,x', 'vbscript:x', 'blob:x', 'about:blank'],
  ...['user@evil.example', '@evil.example', 'https://www.example.com@evil.example', '//www.example.com@evil.example'],
  ...['/\t/evil.example', '/\n/evil.example', '\t//evil.example', ' //evil.example', '/a\r\nSet-Cookie: x=y', '/a%0d%0aSet-Cookie:x'],
  ...['/a?b=%0d%0aLocation:%20//evil.example', '/a?b=%00', '/a?b=%7', '/a?b=%zz', '/a#b', '/a?b#c', '/.', '/..', '/../evil'],
  ...['/a/../..//evil.example', '/a/./b', '/a//evil.example', '/.//evil.example', '/..//evil.example', '/a/', 'evil.example', 'a/b'],
  ...['/sign-out', '/sign-out?x', '/sign-in', '/sign-in/issuer', '/\u2215evil', '/é', '/a b', '/a"b', '/a<b>', '/a;b', '/a:b', '/:80'],
  `/${'a'.repeat(1_024)}`,
]
