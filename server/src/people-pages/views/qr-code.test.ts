import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import decodeQR from 'qr/decode.js'
import { Secret } from '../../kernel/secret.ts'
import { qrCode } from './qr-code.ts'

const SCALE = 4

/** The picture as a camera sees it: pixels of black and white. */
function seen(svg: string): { readonly width: number; readonly height: number; readonly data: Uint8Array } {
  const size = Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1])
  const width = size * SCALE
  const data = new Uint8Array(width * width * 4).fill(255)
  const [, dark = ''] = /fill="#000" d="([^"]*)"/.exec(svg) ?? []
  for (const [, x, y] of dark.matchAll(/M(\d+) (\d+)h1v1h-1z/g))
    for (let row = 0; row < SCALE; row += 1)
      for (let column = 0; column < SCALE; column += 1) {
        const at = ((Number(y) * SCALE + row) * width + Number(x) * SCALE + column) * 4
        data.fill(0, at, at + 3)
      }
  return { width, height: width, data }
}

describe('the picture of a key', () => {
  for (const text of [
    'otpauth://totp/www.example.com:mira%40harbour.example?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=www.example.com&algorithm=SHA1&digits=6&period=30',
    `otpauth://totp/${'a'.repeat(60)}.example:${'b'.repeat(200)}%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP`,
  ])
    it(`is read by a camera as what it stands for, of ${text.length} characters`, () => {
      assert.equal(decodeQR(seen(String(qrCode(new Secret(text), 'The key')))), text)
    })

  it('has a name for whoever does not see it', () => {
    assert.match(String(qrCode(new Secret('x'), 'The <key>')), /role="img" aria-label="The &lt;key&gt;"/)
  })
})
