import type { PlantedBug } from './planted-bug.ts'

const ACCOUNTS = 'test/house/account-commands.test.ts'
const WRONG = 'test/house/wrong-installations.test.ts'

/** What would let an operator lose money, secrets or a day without being told. */
export const bugsOfOperators: readonly PlantedBug[] = [
  {
    id: 'credit-reversed-twice',
    title: 'a mistaken credit is taken back under another id each time',
    promise: 'A credit is taken back once, whoever asks and however often.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/ledger/reverse-credit.ts',
        find: 'const reversalId = reversalOf(paymentId)',
        replace: 'const reversalId = crypto.randomUUID()',
      },
    ],
    caughtBy: [
      { file: ACCOUNTS, title: 'takes a mistaken payment back once, and what was spent already is debt' },
      { file: ACCOUNTS, title: 'takes one back once, whoever of several asks first' },
    ],
  },
  {
    id: 'any-master-key-will-do',
    title: 'a server starts with a master key that opens nothing that is stored',
    promise: 'Nobody serves with a master key that does not open what is stored.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/storage/sealed-values.ts',
        find: 'where name <> all ($1::text[]) group by',
        replace: 'where name <> all ($1::text[]) and false group by',
      },
    ],
    caughtBy: [{ file: WRONG, title: 'that is not the one of what is stored, or is missing' }],
  },
  {
    id: 'leaked-previous-secret-goes-on',
    title: 'the secret before the last rotation works on when it was revoked',
    promise: 'A leaked secret that was revoked is taken nowhere.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/keys.ts',
        find: 'set previous_hash = null, previous_until = null where id = $1',
        replace: 'set previous_hash = previous_hash where id = $1',
      },
    ],
    caughtBy: [{ file: ACCOUNTS, title: 'ends the secret before the last rotation alone' }],
  },
  {
    id: 'below-cost-unnoticed',
    title: 'a price below cost is kept without a word',
    promise: 'What loses money is sold only where somebody says so.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/margins.ts',
        find: 'return price.numerator * cost.denominator < cost.numerator * price.denominator',
        replace: 'return price.numerator < 0n && cost.numerator > 0n',
      },
    ],
    caughtBy: [
      { file: 'test/house/model-commands.test.ts', title: 'price and account sell nothing below cost' },
      { file: 'test/house/price-commands.test.ts', title: 'set and account sell nothing below cost' },
    ],
  },
]
