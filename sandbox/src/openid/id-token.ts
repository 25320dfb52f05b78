import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** Keys of an issuer, and what they sign. */
export type Signer = {
  readonly jwk: Readonly<Record<string, unknown>>
  readonly sign: (claims: Readonly<Record<string, unknown>>) => string
}

const ALGORITHM = 'ES256'

export function createSigner(keyId: string): Signer {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    jwk: { ...publicKey.export({ format: 'jwk' }), kid: keyId, use: 'sig', alg: ALGORITHM },
    sign: (claims) => signed(privateKey, { alg: ALGORITHM, kid: keyId, typ: 'JWT' }, claims),
  }
}

function signed(key: KeyObject, header: object, claims: object): string {
  const content = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const signature = sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' })
  return `${content}.${signature.toString('base64url')}`
}
