import { z } from 'zod'
import { listCustomerPlans, saveCustomerPlan } from '../workspaces/workspaces.ts'
import { action, field } from './action.ts'
import { NO_INPUT, timesOf, timesText } from './fields.ts'

const list = action({
  name: 'plans list',
  summary: 'list plans with their price multiplier and number of customers',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  run: ({ pool }) => listCustomerPlans(pool),
  lines: (all) =>
    all.map(
      ({ id, multiplier, customers }) =>
        `${id}  ${timesText(multiplier)}  ${customers} ${customers === 1 ? 'customer' : 'customers'}`,
    ),
})

const PLAN = /^[a-z][a-z0-9_-]{0,31}$/

function planOf(text: string): string {
  if (PLAN.test(text)) return text
  throw new Error(`${JSON.stringify(text)} is not a valid name of a plan: use lower-case letters, digits, _ and -`)
}

const set = action({
  name: 'plans set',
  summary: "create or change a plan: the multiplier of the reseller's prices, such as 0.8x",
  effect: 'writes',
  positional: ['plan', 'multiplier'],
  input: z.object({
    plan: field('plan', 'name of the plan', planOf),
    multiplier: field('times', 'multiplier of the prices, such as 0.8x', timesOf),
  }),
  async run({ pool, by }, { plan, multiplier }) {
    await saveCustomerPlan({ pool, by }, plan, multiplier)
    return { id: plan, multiplier }
  },
  lines: ({ id, multiplier }) => [
    `Customers on the plan ${id} pay ${timesText(multiplier)} the price of the reseller's operations.`,
  ],
})

export const plans = [list, set]
