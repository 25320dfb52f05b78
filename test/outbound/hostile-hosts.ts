/** Every way to write this machine, or a host that some reader takes for it, in a URL. */
export const HOSTILE_HOSTS: readonly string[] = [
  // Shorthands and other bases of IPv4.
  ...['127.0.0.1', '127.1', '127.0.1', '127.255.255.254', '2130706433', '0x7f000001', '0x7f.1', '0x7F.0x0.0x0.0x1'],
  ...['0177.0.0.1', '017700000001', '0177.1', '00000177.0.0.01', '127.0.0.0x1', '127.0.00.01', '0', '0.0.0.0', '00'],
  ...['127.000.000.001', '0x00000000007f000001', '4294967296', '18446744071562067969', '127.0.0.1.', '127.1.', '1.1'],
  // IPv6, with IPv4 inside.
  ...['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::0:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]'],
  ...['[0:0:0:0:0:ffff:127.0.0.1]', '[::127.0.0.1]', '[::7f00:1]', '[::ffff:0:127.0.0.1]', '[64:ff9b::127.0.0.1]'],
  ...['[64:ff9b::7f00:1]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]', '[2001:0:7f00:1::]', '[::FFFF:127.0.0.1]'],
  ...['[fe80::1%25lo]', '[fe80::1%lo]', '[::1%25lo]', '[::1%lo]', '[::1%]', '[v1.::1]', '[127.0.0.1]', '[::1', '::1'],
  // Users, and what some take for the end of one.
  ...['user:password@127.0.0.1', 'user@127.0.0.1', ':@127.0.0.1', '@127.0.0.1', 'public.example@127.0.0.1'],
  ...['127.0.0.1@public.example@127.0.0.1', 'public.example%40127.0.0.1', 'public.example\\@127.0.0.1'],
  ...['127.0.0.1\\@public.example', '127.0.0.1#@public.example', '127.0.0.1%23@public.example'],
  ...[
    '127.0.0.1%2f@public.example',
    'public.example:443@127.0.0.1',
    '127.0.0.1;public.example',
    '127.0.0.1&@a.example',
  ],
  ...[
    '127.0.0.1,public.example',
    '127.0.0.1 public.example',
    'public.example 127.0.0.1',
    '127.0.0.1%00.public.example',
  ],
  ...[
    '127.0.0.1\u0000',
    '127.0.0.1\t',
    '12\t7.0.0.1',
    '127.0.0.1%0d%0a',
    '127.0.0.1\r\n',
    '\n127.0.0.1',
    '%31%32%37.0.0.1',
  ],
  // Digits, dots and letters of other scripts.
  ...[
    '１２７.０.０.１',
    '127。0。0。1',
    '127．0．0．1',
    '127｡0｡0｡1',
    '①②⑦.⓪.⓪.①',
    '𝟏𝟐𝟕.𝟎.𝟎.𝟏',
    '⑫7.0.0.1',
    '١٢٧.٠.٠.١',
  ],
  ...[
    'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
    'ｌocalhost',
    'loc\u00adalhost',
    'local\u200bhost',
    'localho\u017ft',
    '[::①]',
    '127.0.0.1\u2044',
    'localhost\u3002',
  ],
  // Names of this machine and of others that are not public.
  ...['localhost', 'LOCALHOST', 'localhost.', 'LocalHost..', 'a.localhost', 'localhost.localdomain', 'ip6-localhost'],
  ...[
    'ip6-loopback',
    'broadcasthost',
    'metadata',
    'metadata.google.internal',
    'kubernetes.default.svc',
    'intranet',
    'host.docker.internal',
  ],
  // What is no name.
  ...[
    '',
    '.',
    '..',
    '-',
    '-a.example',
    'a-.example',
    'a..example',
    '.example',
    '*.example',
    '%6c%6fcalhost',
    'a_\u0001b',
  ],
  ...['~', '!', "'", '"', '<', '`', '{', '|', '^', '$', '[', ']', '[]', '[:]', '[::1]]', '[[::1]]', 'a:b', 'a:b:c'],
]

/** Every URL around a host and a port that some reader takes for https to it. */
export function hostileUrlsOf(host: string, port: number): readonly string[] {
  const place = `${host}:${port}`
  return [
    `https://${place}/`,
    `https://${host}/`,
    `http://${place}/`,
    `HTTPS://${place}`,
    `https:${place}/`,
    `https:/${place}/`,
    `https:///${place}/`,
    `https:\\\\${place}\\`,
    `https:/\\${place}/`,
    ` https://${place}/`,
    `https://${place}/ `,
    `ht\ntps://${place}/`,
    `//${place}/`,
    `https://public.example:${port}@${place}/`,
    `https://${place}?@public.example/`,
    `https://${place}#@public.example/`,
    `https://${host}:0${port}/`,
    `https://${host}:+${port}/`,
    `https://${host}:/`,
    `https://${host}:99999/`,
    `https://${host}:${port}:${port}/`,
  ]
}

/** What is no https at all. */
export function otherSchemes(port: number): readonly string[] {
  const schemes = [
    'http',
    'ftp',
    'ws',
    'wss',
    'file',
    'gopher',
    'dict',
    'ldap',
    'data',
    'blob:https',
    'javascript',
    'unix',
  ]
  return [
    ...schemes.map((scheme) => `${scheme}://127.0.0.1:${port}/`),
    ...['', 'https', 'https:', 'https://', 'https:///', '/', '//', '127.0.0.1', 'about:blank', 'file:///etc/passwd'],
    `jar:https://127.0.0.1:${port}!/`,
    `url:https://127.0.0.1:${port}/`,
    `view-source:https://127.0.0.1:${port}/`,
  ]
}
