import type { Mail } from '../../server/src/storage/mail.ts'

const SITE = 'https://farebox.example'
const LINK = { link: `${SITE}/verify/Yk3v9QmT2x8RcN5bWd7LpA`, until: '2099-11-15T21:28:00.000Z' }
const WHERE = { at: '2026-11-15T20:58:00.000Z', address: '203.0.113.20' }
const TO = { to: 'mira@harbour.example' }

/** One letter of each kind, as its sender would give it. */
export const LETTERS: { readonly [What in Mail['what']]: Extract<Mail, { what: What }> } = {
  verify: { what: 'verify', ...TO, ...LINK, credit: '2.00' },
  registered: { what: 'registered', ...TO, signInUrl: `${SITE}/sign-in`, resetUrl: `${SITE}/reset`, ...WHERE },
  reset: { what: 'reset', ...TO, ...LINK, link: `${SITE}/reset/Vq7N1sKe4jHdXw2PzT6RyB`, ...WHERE },
  password_changed: { what: 'password_changed', ...TO, ...WHERE, resetUrl: `${SITE}/reset` },
  factor_changed: { what: 'factor_changed', ...TO, isOn: false, ...WHERE, sessionsUrl: `${SITE}/sessions` },
  factor_guessed: {
    ...{ what: 'factor_guessed', ...TO, failures: 10, isOver: false, ...WHERE, resetUrl: `${SITE}/reset` },
  },
  invitation: {
    ...{ what: 'invitation', to: 'jo@harbour.example', workspace: 'Harbour Labs', role: 'developer' },
    by: { name: 'Mira Halloran', email: 'mira@harbour.example' },
    ...{ link: `${SITE}/invitations/Hc5Mz8TgQe3aJv6LxU1sWd`, until: LINK.until },
  },
  admin_added: {
    ...{ what: 'admin_added', ...TO, workspace: 'Harbour Labs', member: 'jo@harbour.example', role: 'admin' },
    ...{ by: 'Mira Halloran', siteUrl: SITE },
  },
  member_removed: {
    ...{ what: 'member_removed', ...TO, workspace: 'Harbour Labs', member: 'jo@harbour.example', keys: 2 },
    ...{ by: 'Mira Halloran', became: 'kept', siteUrl: SITE },
  },
  charge_refunded: {
    ...{ what: 'charge_refunded', ...TO, workspace: 'Harbour Labs', callId: '01a1e0c2-0000-7000-8000-000000000002' },
    ...{ amount: '0.004000000', reason: 'The answer was cut off.', siteUrl: SITE },
  },
  link_refused: {
    ...{ what: 'link_refused', ...TO, workspace: 'Harbour Labs', account: 'harbour' },
    ...{ keyId: '01a1e0c2-0000-7000-8000-000000000003', siteUrl: SITE },
  },
  grant_reused: {
    ...{ what: 'grant_reused', ...TO, client: 'Tram Planner', workspace: 'Harbour Labs' },
    ...{ ...WHERE, grantsUrl: `${SITE}/grants` },
  },
  mandate_used: {
    ...{ what: 'mandate_used', ...TO, client: 'Tram Planner', workspace: 'Harbour Labs', isOver: false },
    ...{ hasExpired: false, amount: '5.000000000', charged: '4.001120500', held: '0.100000000', left: '0.898879500' },
    ...{ endsAt: LINK.until, mandateUrl: `${SITE}/mandates/01a1e0c2-0000-7000-8000-000000000001` },
  },
  budget_used: {
    ...{ what: 'budget_used', ...TO, workspace: 'Harbour Labs', isTest: false, budget: 'tag team=search', percent: 80 },
    ...{ period: 'month', amount: '5.000000000', charged: '4.001120500', held: '0.100000000', left: '0.898879500' },
    ...{ resetsAt: '2026-12-01T00:00:00.000Z', siteUrl: SITE },
  },
  balance_low: {
    what: 'balance_low',
    ...TO,
    workspace: 'Harbour Labs',
    balance: '0.870000000',
    low: '1.000000000',
    siteUrl: SITE,
  },
  quota_asked: {
    ...{ what: 'quota_asked', to: 'help@farebox.example', workspace: 'Harbour Labs', siteUrl: SITE },
    ...{ workspaceId: '01a1e0c2-0000-7000-8000-000000000002', requestId: '01a1e0c2-0000-7000-8000-000000000003' },
    ...{ requestsPerMinute: 6_000, tokensPerMinute: 9_000_000, targets: 'rerank, tag_detail' },
    useCase: 'The search of our shop asks it for every word that is typed.',
  },
  closure_asked: {
    ...{ what: 'closure_asked', ...TO, workspace: 'Harbour Labs', closesAt: LINK.until, siteUrl: SITE },
  },
  closure_canceled: { what: 'closure_canceled', ...TO, workspace: 'Harbour Labs', siteUrl: SITE },
  workspace_suspended: {
    ...{ what: 'workspace_suspended', ...TO, workspace: 'Harbour Labs', reason: 'Stolen cards.', siteUrl: SITE },
  },
  workspace_resumed: {
    ...{ what: 'workspace_resumed', ...TO, workspace: 'Harbour Labs', reason: 'It was a mistake.', siteUrl: SITE },
  },
  closure_done: { what: 'closure_done', ...TO, workspace: 'Harbour Labs', siteUrl: SITE },
  quota_decided: {
    ...{ what: 'quota_decided', ...TO, workspace: 'Harbour Labs', isApproved: true, note: 'For the sale until May.' },
    ...{ limits: { requestsPerMinute: 6_000, tokensPerMinute: 9_000_000, concurrency: 50 }, siteUrl: SITE },
  },
}
