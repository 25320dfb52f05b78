import { FAULTS } from '../../kernel/fault.ts'

type Words = { readonly title: string; readonly fix: string }

/** What a refusal means to whoever looks after a key, and what to do about it. */
const WORDS: Readonly<Record<string, Words>> = {
  budget_exceeded: { title: 'A budget was used up', fix: 'Raise the budget, or wait until its period begins again.' },
  insufficient_balance: {
    title: 'The balance was too low',
    fix: 'Add money to the workspace, or lower the maximum cost of calls.',
  },
  cost_cap_exceeded: {
    title: 'A call could exceed its own cap',
    fix: 'Raise the cap that the call sends, or lower its output limit.',
  },
  rate_limit_exceeded: { title: 'A rate limit was reached', fix: 'Spread the calls, or raise the limits of the key.' },
  quota_exceeded: {
    title: 'One call needed more than a limit has',
    fix: 'Shorten the call, or raise the tokens a minute.',
  },
  forbidden: { title: 'The key lacks a scope', fix: 'Add the scope to the key, if it should have it.' },
  address_not_allowed: { title: 'It came from another address', fix: 'Add the address to the key, if it is yours.' },
  invalid_request: { title: 'The request was not valid', fix: 'Correct it: the answer named the part that is wrong.' },
  account_suspended: { title: 'The workspace owes money', fix: 'Pay what is owed: no call begins until then.' },
}

export function refusalWords(reason: string): Words {
  const known = WORDS[reason]
  if (known !== undefined) return known
  const fault = Object.entries(FAULTS).find(([code]) => code === reason)?.[1]
  return { title: reason.replaceAll('_', ' '), fix: fault?.text ?? 'The answer of the call said what to do.' }
}
