import type { SMTPPoolOptions } from 'nodemailer'
import type { Secret } from '../kernel/secret.ts'

/** How long a mail server may let us wait for anything, well within the time of an attempt. */
const CONNECT_MS = 10_000
const SILENCE_MS = 20_000
const CONNECTIONS = 5
const IDLE_MS = 60_000
const LOOPBACK = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|localhost|\[::1\])$/

/**
 * What `smtp://user:password@host:port` means. Whoever is not on this machine is spoken to under TLS alone, from the first byte (smtps)
 * or before anything is told (STARTTLS): mail has links that sign people in.
 */
export function smtpOptions(secret: Secret): SMTPPoolOptions & { readonly pool: true } {
  const url = new URL(secret.reveal())
  const isSecure = url.protocol === 'smtps:'
  const isLocal = LOOPBACK.test(url.hostname)
  return {
    pool: true,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (isSecure ? 465 : 587)),
    secure: isSecure,
    requireTLS: !isSecure && !isLocal,
    ignoreTLS: !isSecure && isLocal,
    ...(url.username !== '' && {
      auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) },
    }),
    maxConnections: CONNECTIONS,
    idleTimeout: IDLE_MS,
    // The outbox tries again, and counts.
    maxRequeues: 0,
    dnsTimeout: CONNECT_MS,
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
    logger: false,
  }
}
