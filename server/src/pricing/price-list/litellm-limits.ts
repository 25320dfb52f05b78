import type { FileModel } from './file.ts'
import type { Tree } from './tree.ts'

/** The limits of a model of the community list. */

/** Embeddings have no output. */
const NO_OUTPUT = 1

export function limitsOf(entry: Tree, mode: string, said: string[]): Pick<FileModel, 'context_window' | 'output_most'> {
  const input = countAt(entry, 'max_input_tokens', said) ?? countAt(entry, 'max_tokens', said)
  const given = countAt(entry, 'max_output_tokens', said) ?? countAt(entry, 'max_tokens', said)
  const output = mode === 'embedding' ? NO_OUTPUT : given
  if (input === undefined || output === undefined) {
    said.push('it does not say its limits: a new model needs context_window and output_most')
    return {}
  }
  // Input never exceeds max_input_tokens, so that holds cover it; an output must fit in the window as well.
  if (output <= input) return { context_window: input, output_most: output }
  said.push(`its output may be longer than its input: context_window is both together, ${input + output}`)
  return { context_window: input + output, output_most: output }
}

function countAt(entry: Tree, member: string, said: string[]): number | undefined {
  const text = textAt(entry, member)
  if (text === undefined) return undefined
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  said.push(`${member} is ${JSON.stringify(text.slice(0, 40))}, which is no number of tokens, and is not carried over`)
  return undefined
}

export function textAt(entry: Tree, member: string): string | undefined {
  const found = entry.kind === 'members' ? entry.members.get(member) : undefined
  return found?.kind === 'text' ? (found.text ?? undefined) : undefined
}
