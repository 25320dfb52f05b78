import { z } from 'zod'
import { areWebPages, whatIsWrongWith } from './redirects.ts'

/**
 * What is taken of what a client says of itself, in a registration or in its document: what is known here and within bounds. All else is
 * left out, so that nothing that a stranger names is ever asked for or shown: no logo, no keys, no sector.
 */
export type ClientMetadata = Readonly<Record<string, string | readonly string[]>>

export class ClientRefusal extends Error {
  readonly error: 'invalid_redirect_uri' | 'invalid_client_metadata'

  constructor(error: ClientRefusal['error'], message: string) {
    super(message)
    this.name = 'ClientRefusal'
    this.error = error
  }
}

export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const GRANT_TYPES = ['authorization_code', 'refresh_token', DEVICE_CODE]
/** Neither keys nor a secret that would have to be kept readable. */
export const AUTH_METHODS = ['none', 'client_secret_basic', 'client_secret_post'] as const

const REDIRECTS_LIMIT = 20
const NAME_LIMIT = 100
/** Controls, and what turns around or hides the text that follows it. */
const NOT_SHOWN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

const given = z.object({
  client_name: z
    .string()
    .max(2_000)
    .transform((name) => [...name.replaceAll(NOT_SHOWN, '').trim()].slice(0, NAME_LIMIT).join(''))
    .optional()
    .catch(undefined),
  redirect_uris: z.array(z.string()).max(REDIRECTS_LIMIT).default([]),
  grant_types: z.array(z.string()).max(REDIRECTS_LIMIT).default(['authorization_code']),
  response_types: z.array(z.string()).max(REDIRECTS_LIMIT).optional(),
  token_endpoint_auth_method: z.enum(AUTH_METHODS, { error: `must be ${AUTH_METHODS.join(', ')}` }).optional(),
})

type From = 'registration' | 'document'

export function readClientMetadata(value: unknown, from: From): ClientMetadata {
  const { success, data, error } = given.safeParse(value)
  if (!success) {
    const [issue] = error.issues
    const name = String(issue?.path[0] ?? 'the metadata')
    throw new ClientRefusal(
      name === 'redirect_uris' ? 'invalid_redirect_uri' : 'invalid_client_metadata',
      `${name}: ${issue?.message ?? 'is not valid'}`,
    )
  }
  for (const address of data.redirect_uris) {
    const wrong = whatIsWrongWith(address)
    if (wrong !== null) throw new ClientRefusal('invalid_redirect_uri', `redirect_uris ${wrong}`)
  }
  const grantTypes = GRANT_TYPES.filter((type) => data.grant_types.includes(type))
  const needsRedirect = grantTypes.includes('authorization_code')
  if (grantTypes.length === 0)
    throw new ClientRefusal('invalid_client_metadata', `grant_types must be among ${GRANT_TYPES.join(', ')}`)
  if (needsRedirect && data.redirect_uris.length === 0)
    throw new ClientRefusal('invalid_redirect_uri', 'redirect_uris are required')
  const method = data.token_endpoint_auth_method ?? (from === 'document' ? 'none' : 'client_secret_basic')
  return {
    // What a client calls itself is wrong often enough: some apps say web, and Claude Code says nothing.
    application_type: data.redirect_uris.length > 0 && areWebPages(data.redirect_uris) ? 'web' : 'native',
    redirect_uris: data.redirect_uris,
    grant_types: grantTypes,
    response_types: needsRedirect ? ['code'] : [],
    response_modes: ['query'],
    token_endpoint_auth_method: method,
    ...(data.client_name !== undefined && data.client_name !== '' && { client_name: data.client_name }),
  }
}
