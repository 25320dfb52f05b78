import { z } from 'zod'
import { clientDocuments } from './client-documents.ts'
import { section, setting } from './described.ts'
import {
  amount,
  choice,
  domain,
  flag,
  httpOrigin,
  issuerClientId,
  issuerClientSecret,
  issuerName,
  issuerUrl,
  list,
  longSecret,
  network,
  sender,
  smtpUrl,
} from './kinds.ts'
import { accent, link, logo, shown, siteName, support } from './label.ts'

const issuer = z.strictObject({
  url: setting(
    issuerUrl,
    'URL of an OpenID provider that people may sign in by, exactly as it calls itself.',
    'Copy it from `issuer` of its discovery document. It needs `http.site_url`, to which people come back.',
  ),
  client_id: setting(
    issuerClientId,
    'Client id of this installation at the OpenID provider.',
    'Copy it from the provider.',
  ),
  client_secret: setting(
    issuerClientSecret,
    'Client secret of this installation at the OpenID provider.',
    'Copy it from the provider, and register `<http.site_url>/sign-in/issuer/callback` there as the redirect URI.',
  ),
  name: setting(issuerName, 'Name of the OpenID provider on the sign-in page.', 'Use the name that your people know.'),
})

export const people = section(
  z
    .strictObject({
      sign_up: setting(
        choice(['open', 'closed'], 'must be open or closed').prefault('open'),
        'Sign-up: whether anybody may make an account, or only who is invited.',
        'Set `closed` for an installation of one company.',
      ),
      domains: setting(
        list(domain).prefault([]),
        'Sign-up only with e-mail addresses of exactly these domains, without their subdomains. Empty: every domain. Invited people may have any address.',
        'List the domains of your company if only its people may sign up. It matters only where `people.sign_up` is `open`.',
      ),
      credit: setting(
        amount.prefault('2'),
        'Promotional credit for the first workspace of a mailbox, in USD. Addresses that differ only in a label (`jo+test@…`) are one mailbox; at Gmail also those that differ in dots.',
        'Set 0 where nobody is to get anything for free.',
      ),
      test_credit: setting(
        amount.prefault('5'),
        'Test money of every new workspace, in USD. A test call that would be refused for want of money gets it again, at most once a day and account.',
        'Set 0 for none. Test money pays nothing but test upstreams. Give processes with the roles `site` and `gateway` the same.',
      ),
      low_balance: setting(
        amount.prefault('1'),
        'Low balance: owners and admins get an e-mail when the live balance of their workspace falls below it.',
        'Set 0 for no such e-mails. One is sent once, and again only after the balance was above it.',
      ),
      issuer: issuer.optional(),
    })
    .prefault({}),
  'Accounts of people, and how they sign in ([people.md](people.md), [mail.md](mail.md#sign-in-by-an-issuer)). The settings of `people.issuer` are given together or not at all.',
)

export const oauth = section(
  z
    .strictObject({
      introspection_secret: setting(
        longSecret.optional(),
        'Secret of the client `operator` (HTTP Basic) at the introspection endpoint. Without it there is no such endpoint.',
        'Set it where a program of yours has to ask what an access token is.',
      ),
      client_documents: setting(
        clientDocuments.optional(),
        'Documents of more clients, brought along as those of Claude Code, Codex and others are: they count where the host of a document does not answer.',
        'Set it where this installation can’t reach the host of a client that your people use.',
      ),
    })
    .prefault({}),
  'The authorization server ([oauth.md](oauth.md)).',
)

export const mail = section(
  z
    .strictObject({
      url: setting(
        smtpUrl.optional(),
        'Mail server (SMTP) that delivers our mail. `smtps` uses TLS from the start (port 465), `smtp` uses STARTTLS (port 587). Both are required to encrypt; only `smtp` to this machine (`localhost`, `127.0.0.1`, `::1`) goes without TLS.',
        'Set it before people sign up: without it nobody can.',
      ),
      from: setting(
        sender.optional(),
        'Sender of our mail. It is required with `mail.url`.',
        'Set up SPF, DKIM and DMARC for its domain at the mail server.',
      ),
    })
    .prefault({}),
  'Mail to people ([mail.md](mail.md)).',
)

const NOT_SHOWN = 'Set it where your law asks for it; left out, there is no such link.'

export const site = section(
  z
    .strictObject({
      name: setting(
        siteName.optional(),
        'Name of the installation in titles of pages and beside the menu. Without it: `names.provider`.',
        'Set it to the name that your customers know.',
      ),
      logo: setting(
        logo.optional(),
        'Logo in place of the name, read when the process starts and shown 28 px high.',
        'Give an SVG without scripts, links and animations.',
      ),
      accent_light: setting(
        accent('light').optional(),
        'Colour of links, buttons and the focus on light pages. Without it, pages have the built-in colours.',
        'Give `site.accent_dark` too, or neither: pages have both schemes.',
      ),
      accent_dark: setting(
        accent('dark').optional(),
        'Colour of links, buttons and the focus on dark pages. Without it, pages have the built-in colours.',
        'Give `site.accent_light` too, or neither: pages have both schemes.',
      ),
      terms_url: setting(link.optional(), 'Link to your terms at the end of every page.', NOT_SHOWN),
      privacy_url: setting(link.optional(), 'Link to your privacy policy at the end of every page.', NOT_SHOWN),
      imprint_url: setting(link.optional(), 'Link to your imprint at the end of every page.', NOT_SHOWN),
      show: setting(
        shown.prefault(['proof', 'reference']),
        'What customers see on the website beside what is sold and the guides for callers: the guides for operators (`operator_guides`), the recorded proofs (`proof`), the API reference (`reference`). What is left out is on no page, in no menu, and not in llms.txt and search.',
        'Leave `operator_guides` out where customers read the website. Add it where your own people do.',
      ),
      support: setting(
        support.optional(),
        'Where people get help: a mail address, or a page.',
        'Set it to a mailbox that somebody reads.',
      ),
    })
    .prefault({}),
  'Name and colours of pages ([operating.md](operating.md#your-name-on-the-pages)). Give processes with the roles `site` and `gateway` the same.',
)

export const links = section(
  z
    .strictObject({
      offline_access: setting(
        flag.prefault(false),
        'Refresh tokens for linked accounts: whether links may outlive two hours. Without it the scope `offline.access` is refused.',
        'Set `true` where callers act for users who are away, and your contract with the platform allows it.',
      ),
    })
    .prefault({}),
  'Linked accounts ([links.md](links.md#for-operators)).',
)

export const outbound = section(
  z
    .strictObject({
      access: setting(
        choice(['public', 'listed', 'none'], 'must be public, listed or none').prefault('public'),
        'Egress to URLs that customers and clients give: to public addresses and listed origins, to listed origins alone, or none.',
        'Set `listed` or `none` where processes may not reach the internet.',
      ),
      allowed_origins: setting(
        list(httpOrigin).prefault([]),
        'Exceptions: origins to which such requests are always allowed, also at private addresses of your network, on any port and by plain http. With `outbound.access: listed`, requests go only to these.',
        'List only what every customer may reach. Scheme, host and port are compared exactly.',
      ),
      refused_networks: setting(
        list(network).prefault([]),
        'Networks that are refused as if they were private.',
        'List networks of yours that look public: global IPv6 inside, public IPv4 that only you route, your NAT64 prefix.',
      ),
    })
    .prefault({}),
  'Protection against server-side request forgery ([outbound.md](outbound.md)). Upstreams that you configure are not concerned.',
)
