/** What the library says to itself of a code or a refresh token that it refuses, in words for whoever sent it. */
const WORDS: Readonly<Record<string, string>> = {
  'refresh token not found':
    'The refresh token is not known: it is wrong, or it has expired or was revoked. Sign in again.',
  'refresh token is expired': 'The refresh token has expired. Sign in again.',
  'refresh token already used': 'The refresh token was used before, so its grant was ended. Sign in again.',
  'it was used before': 'It was used before, so its grant was ended. Sign in again.',
  'authorization code not found': 'The code is not known: it is wrong, or it has expired. Sign in again.',
  'authorization code is expired': 'The code has expired: it is good for a minute. Sign in again.',
  'authorization code already consumed': 'The code was used before, so its grant was ended. Sign in again.',
  'authorization code redirect_uri mismatch': 'redirect_uri is not the one that the code was issued for.',
  'code_verifier does not match code_challenge': 'code_verifier does not match the code_challenge of the request.',
  'code_verifier must be provided': 'code_verifier is required.',
  'grant not found': 'The grant has ended: it was revoked or has expired. Sign in again.',
  'grant is expired': 'The grant has expired. Sign in again.',
  'the grant has ended': 'The grant has ended: it was revoked or has expired. Sign in again.',
  'client mismatch': 'It was issued to another client. Send the client_id that it was issued to.',
}

type Answered = { body: unknown }
type Refused = Error & { readonly error?: string; readonly error_detail?: string }

/** Tells a client what was wrong with what it sent to the token endpoint. */
export function tellWhyRefused(ctx: Answered, { error, error_detail: reason = '' }: Refused): void {
  const words = WORDS[reason]
  if (error === 'invalid_grant' && words !== undefined) ctx.body = { error, error_description: words }
}
