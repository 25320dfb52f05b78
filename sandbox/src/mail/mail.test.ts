import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, beforeEach, describe, it } from 'node:test'
import { request } from 'undici'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { createSandbox } from '../sandbox.ts'
import { receiveMail } from './receive.ts'
import type { ReceivedMail } from './received-mail.ts'

const { server, mailbox, close } = createSandbox()
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const address = server.address()
assert.ok(address !== null && typeof address === 'object')
const url = `http://127.0.0.1:${address.port}`
const receiver = await receiveMail(mailbox, 0)
after(() => Promise.all([close(), receiver.close()]))

const MESSAGE = [
  ...[
    'From: Farebox <no-reply@farebox.example>',
    'To: Mira <mira@harbour.example>',
    'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=',
  ],
  ...['Message-ID: <1@farebox.example>', 'Content-Type: multipart/alternative; boundary=b', ''],
  ...['--b', 'Content-Type: text/plain', '', 'Open https://farebox.example/verify/abc now', ''],
  ...['--b', 'Content-Type: text/html', '', '<script>alert(1)</script><p>Open</p>', '', '--b--', ''],
].join('\r\n')

/** Speaks SMTP line by line; the codes that were answered, and how the connection ended. */
async function hand(to: string, message = MESSAGE): Promise<readonly string[]> {
  const socket = connect(Number(new URL(receiver.url).port), '127.0.0.1')
  socket.on('error', () => {})
  const lines = [
    'EHLO client',
    'MAIL FROM:<no-reply@farebox.example>',
    `RCPT TO:<${to}>`,
    'DATA',
    `${message}\r\n.`,
    'QUIT',
  ]
  const answers: string[] = []
  let text = ''
  for await (const piece of socket) {
    text += String(piece)
    for (let end = text.indexOf('\r\n'); end >= 0; end = text.indexOf('\r\n')) {
      const line = text.slice(0, end)
      text = text.slice(end + 2)
      if (line[3] === '-') continue
      answers.push(line.slice(0, 3))
      const isRefused = /^[45]/.test(line)
      const next = isRefused ? 'QUIT' : lines.shift()
      if (next !== undefined && !socket.writableEnded) socket.write(`${next}\r\n`)
    }
  }
  return answers
}

const TAKEN = ['220', '250', '250', '250', '354', '250', '221']

async function list(query = ''): Promise<readonly ReceivedMail[]> {
  const answer = (await (await request(`${url}/mail.json${query}`)).body.json()) as { mail: readonly ReceivedMail[] }
  return answer.mail
}

async function order(value: unknown) {
  const { statusCode, body } = await request(`${url}/control/mail`, { method: 'POST', body: JSON.stringify(value) })
  return { status: statusCode, said: JSON.stringify(await body.json()) }
}

beforeEach(async () => {
  await (await request(`${url}/mail.json`, { method: 'DELETE' })).body.dump()
  await (await request(`${url}/control/mail`, { method: 'DELETE' })).body.dump()
})

describe('mail of the sandbox', () => {
  it('is taken for anybody, and read as a reader of mail would', async () => {
    assert.deepEqual(await hand('mira@harbour.example'), TAKEN)
    const [mail, ...others] = await list()
    assert.equal(others.length, 0)
    assert.ok(mail !== undefined)
    assert.deepEqual(mail.envelope, { from: 'no-reply@farebox.example', to: ['mira@harbour.example'] })
    assert.deepEqual(
      [mail.from, mail.to, mail.subject, mail.message_id, mail.acknowledged],
      [
        [{ name: 'Farebox', address: 'no-reply@farebox.example' }],
        [{ name: 'Mira', address: 'mira@harbour.example' }],
        ...['Grüße', '<1@farebox.example>', true],
      ],
    )
    assert.deepEqual(mail.links, ['https://farebox.example/verify/abc'])
    assert.match(mail.html ?? '', /<p>Open<\/p>/)
    assert.equal(mail.headers.length, 5)
  })

  it('is listed the newest first, by whom it was handed over for, and emptied', async () => {
    for (const to of ['a@x.example', 'b@x.example', 'A@x.example']) await hand(to)
    assert.deepEqual(
      (await list()).map(({ envelope }) => envelope.to[0]),
      ['A@x.example', 'b@x.example', 'a@x.example'],
    )
    assert.equal((await list('?to=a%40x.example')).length, 2)
    assert.equal((await list('?to=c%40x.example')).length, 0)
    await (await request(`${url}/mail.json`, { method: 'DELETE' })).body.dump()
    assert.deepEqual(await list(), [])
  })

  it('keeps the newest thousand', () => {
    const one = {
      at_ms: 0,
      envelope: { from: '', to: ['a@x.example'] },
      message_id: null,
      from: [],
      to: [],
      subject: '',
    }
    for (let at = 0; at < 1_005; at += 1)
      mailbox.add({ ...one, headers: [], text: String(at), html: null, links: [], bytes: 0, acknowledged: true })
    const kept = mailbox.list()
    assert.deepEqual([kept.length, kept[0]?.text, kept.at(-1)?.text], [1_000, '1004', '5'])
  })

  it('that is too large is refused', async () => {
    const large = `${MESSAGE}${`${'x'.repeat(70)}\r\n`.repeat(16_000)}`
    assert.equal((await hand('mira@harbour.example', large)).at(-2), '552')
  })

  it('is shown on pages, its HTML where it can do nothing', async () => {
    await hand('mira@harbour.example')
    const page = async (path: string) => {
      const { body, headers, statusCode } = await request(url + path)
      return { status: statusCode, text: await body.text(), policy: String(headers['content-security-policy']) }
    }
    const all = await page('/mail')
    const [, path = ''] = /href="(\/mail\/\d+)">Grüße</.exec(all.text) ?? []
    const one = await page(path)
    assert.match(one.text, /<a href="https:\/\/farebox\.example\/verify\/abc">/)
    assert.match(one.text, /<iframe sandbox src/)
    assert.doesNotMatch(one.text + all.text, /<script>/)
    const markup = await page(`${path}/html`)
    assert.match(markup.text, /<script>alert/)
    assert.match(markup.policy, /default-src 'none'.*; sandbox$/)
    assert.equal((await page('/mail/999999')).status, 404)
  })
})

describe('faults of mail', () => {
  it('refuse, as often as told, when the receiver is named or when the message has come', async () => {
    await order({ directives: ['status=451'], times: 2 })
    assert.deepEqual(await hand('a@x.example'), ['220', '250', '250', '451', '221'])
    assert.equal((await hand('a@x.example'))[3], '451')
    assert.deepEqual(await hand('a@x.example'), TAKEN)
    await order({ directives: ['status=554', 'at=data'] })
    assert.deepEqual(await hand('a@x.example'), ['220', '250', '250', '250', '354', '554', '221'])
    assert.equal((await list()).length, 1)
  })

  it('wait for the address that they are for', async () => {
    await order({ directives: ['status=550'], to: 'b@x' })
    assert.deepEqual(await hand('a@x.example'), TAKEN)
    assert.equal((await hand('b@x.example'))[3], '550')
  })

  it('cut the connection before the message, or once it was taken', async () => {
    await order({ directives: ['reset=before-data'] })
    assert.deepEqual(await hand('a@x.example'), ['220', '250', '250'])
    assert.deepEqual(await list(), [])
    await order({ directives: ['reset=after-data'] })
    assert.deepEqual(await hand('a@x.example'), ['220', '250', '250', '250', '354'])
    assert.deepEqual(
      (await list()).map(({ acknowledged }) => acknowledged),
      [false],
    )
  })

  it('delay the answer, or never give it', async () => {
    await order({ directives: ['delay=20'] })
    assert.deepEqual(await hand('a@x.example'), TAKEN)
    await order({ directives: ['hang'] })
    void hand('b@x.example').catch(() => {})
    await until(async () => (await list('?to=b%40x.example')).length === 1, PATIENCE_MS, 'the message')
  })

  it('that make no sense are refused, and those that wait are listed', async () => {
    for (const wrong of [
      ...[1, {}, { directives: [] }, { directives: [1] }, { directives: ['status=200'] }, { directives: ['at=ehlo'] }],
      ...[{ directives: ['delay=x'] }, { directives: ['reset=now'] }, { directives: ['nonsense'] }],
      ...[
        { directives: ['hang'], times: 0 },
        { directives: ['hang'], to: 1 },
      ],
    ])
      assert.equal((await order(wrong)).status, 400, JSON.stringify(wrong))
    const { said } = await order({ directives: ['status=450'], times: 3 })
    assert.equal(said, '{"faults":[{"directives":["status=450"],"times":3}]}')
  })
})
