import { writeDocument } from '../harness/written-document.ts'
import { membersDocument } from '../server/src/protocols/members-document.ts'

/** `node scripts/members.ts [--check]`: writes docs/members.md from the tables of members, or says whether it is what it would write. */
writeDocument({ name: 'members', from: 'the tables of members', write: membersDocument })
