import { type ParseArgsConfig, parseArgs } from 'node:util'

/** The arguments of one of our scripts. Who asks for help, or writes what it does not know, is told in a sentence, and it ends. */
export function scriptArguments<const Options extends NonNullable<ParseArgsConfig['options']>>(
  usage: string,
  options: Options,
  { allowPositionals = false }: { readonly allowPositionals?: boolean } = {},
) {
  if (process.argv.slice(2).some((one) => one === '--help' || one === '-h')) {
    console.log(usage)
    process.exit(0)
  }
  try {
    return parseArgs({ options, allowPositionals })
  } catch (error) {
    console.error(`${error instanceof Error ? (error.message.split('. ')[0] ?? '') : 'failed'}. ${usage}`)
    process.exit(1)
  }
}
