import type { Choice, Member, Shape, Table } from '../catalogue/member-table.ts'
import { RERANK } from '../catalogue/operations/rerank-members.ts'
import { markdownTable } from '../kernel/markdown.ts'
import { MESSAGES } from './anthropic-members.ts'
import { ANTHROPIC_BETAS, type Betas, OPENAI_BETAS } from './betas.ts'
import { BATCH_EMBED_REQUEST, CONTENT_REQUEST, COUNT_REQUEST, EMBED_REQUEST } from './gemini-members.ts'
import { CHAT, EMBEDDINGS, IMAGES } from './openai-members.ts'
import { RESPONSES } from './openai-responses-members.ts'

/** The tables of each operation, as callers know it. */
export const REQUESTS: Readonly<Record<string, Table>> = {
  '/v1/chat/completions': CHAT,
  '/v1/responses': RESPONSES,
  '/v1/embeddings': EMBEDDINGS,
  '/v1/images/generations': IMAGES,
  '/v1/messages, /v1/messages/count_tokens': MESSAGES,
  '/v1beta/models/{model}:generateContent, :streamGenerateContent': CONTENT_REQUEST,
  '/v1beta/models/{model}:countTokens': COUNT_REQUEST,
  '/v1beta/models/{model}:embedContent': EMBED_REQUEST,
  '/v1beta/models/{model}:batchEmbedContents': BATCH_EMBED_REQUEST,
  '/v1/rerank': RERANK,
}

/** The tables for people, as a page of Markdown. */
export function membersDocument(): string {
  return `# Members of requests

Written by \`node scripts/members.ts\` from the tables by which requests are read. A member that is not here is refused with
400, which says where it stands, unless a route of the model passes unknown members on (see [models.md](models.md)). So is a
name in another spelling (in another case, or with other signs between its words), or one that is given in two. Free-form members are passed on as they are, whatever they
hold: nobody looks into them.

- **neutral**: it changes nothing that is paid for.
- **priced**: it is in the price of a call, in the way that it says.
- **limited**: only these values are taken; another has a price of its own.
- **needs a price**: taken where the model has a price of that class, tier or tool ([pricing.md](pricing.md#classes-of-a-price)); refused elsewhere.
- **refused**: on every route.

${requestSections()}
${[ANTHROPIC_BETAS, OPENAI_BETAS].map(betaSection).join('\n')}`
}

/** What several requests have in common is shown with the first. */
function requestSections(): string {
  const met = new Set<Shape>()
  const sections = Object.entries(REQUESTS).map(([path, table]) => {
    const shown = new Set(met)
    const shapes = shapesOf(table, met).filter((shape) => !shown.has(shape))
    return `## ${path}\n\n${shapes.map(shapeSection).join('\n')}`
  })
  return sections.join('\n')
}

/** A table and all that stand within it, each once, in the order in which they are met. */
export function shapesOf(shape: Shape, met = new Set<Shape>()): readonly Shape[] {
  if (met.has(shape)) return [...met]
  met.add(shape)
  if ('kinds' in shape)
    for (const table of Object.values(shape.kinds)) if (typeof table === 'object') shapesOf(table, met)
  if ('members' in shape) for (const { within } of Object.values(shape.members)) if (within) shapesOf(within(), met)
  return [...met]
}

function shapeSection(shape: Shape): string {
  return `### ${shape.title}\n\n${'kinds' in shape ? choiceRows(shape) : tableRows(shape)}\n`
}

type Row = readonly [name: string, what: string]

function choiceRows({ by, kinds, others }: Choice): string {
  const rows = Object.entries(kinds).map(([kind, table]): Row => {
    return [`\`${kind}\``, typeof table === 'string' ? `refused: ${table}` : `${neededBy(table)}see ${table.title}`]
  })
  return markdownTable([
    [`\`${by}\``, 'what it is'],
    ...rows,
    ['any other', others === undefined ? 'unknown' : `refused: ${others}`],
  ])
}

function neededBy({ needs }: Table): string {
  return needs === undefined ? '' : `needs a price of \`${needs.need}\`, else refused: ${needs.why} `
}

function tableRows({ members, others }: Table): string {
  const rest: readonly Row[] = others === undefined ? [] : [['any other', `refused: ${others}`]]
  return markdownTable([['member', 'what it is'], ...rowsOf(members), ...rest])
}

function rowsOf(members: Readonly<Record<string, Member>>): readonly Row[] {
  return Object.entries(members).map(([name, member]) => [`\`${name}\``, standingOf(member)])
}

function standingOf(member: Member): string {
  const within = member.within === undefined ? '' : `; see ${member.within().title}`
  switch (member.is) {
    case 'neutral':
      return `neutral${within}`
    case 'priced':
      return `priced: ${member.how}${within}`
    case 'limited':
      return `limited to ${member.to.map((value) => `\`${JSON.stringify(value)}\``).join(', ')}: ${member.why}${further(member.priced)}`
    case 'needing':
      return `needs a price of \`${member.need}\`, else refused: ${member.why}${within}`
    case 'refused':
      return `refused: ${member.why}`
  }
}

function further(values: Readonly<Record<string, string>> = {}): string {
  const said = Object.entries(values).map(([value, need]) => `\`"${value}"\` with a price of \`${need}\``)
  return said.length === 0 ? '' : ` Also ${said.join(', ')}.`
}

function betaSection({ header, known }: Betas): string {
  const rows = markdownTable([['beta', 'what it is'], ...rowsOf(known)])
  return `## The header ${header}\n\nBy their names without a date or a version.\n\n${rows}\n`
}
