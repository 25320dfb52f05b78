import { startGateway } from '../../harness/gateways.ts'
import { type Installation, startInstallation } from '../acceptance/installation.ts'

/** Every page that a website can have. */
export const SHOWS_ALL = { FAREBOX_SITE_SHOW: 'operator_guides,proof,reference' }

/** An installation whose website has every page. */
export async function startShownSite(databaseUrl: string, env: Readonly<Record<string, string>> = {}) {
  const installation: Installation = await startInstallation(databaseUrl, { env: { ...SHOWS_ALL, ...env } })
  return { ...installation, siteUrl: installation.gateways[0]?.siteUrl ?? '' }
}

/** Another process of the same installation, for the website alone. */
export function startSiteOf(
  databaseUrl: string,
  { masterKey }: Pick<Installation, 'masterKey'>,
  env: Readonly<Record<string, string>> = {},
) {
  return startGateway({
    databaseUrl,
    env: {
      FAREBOX_ROLES: 'site',
      FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
      FAREBOX_LOG_LEVEL: 'warn',
      ...env,
    },
  })
}
