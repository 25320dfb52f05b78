import { createRequire } from 'node:module'

/**
 * Runs the server of the package @musistudio/llms, which has no command of its own. It passes on what it is asked for, and writes no
 * log, because ours writes none for a call either.
 */
type Module = { readonly default: new (options: object) => { readonly start: () => Promise<void> } }

const [file = '', port = '', upstream = ''] = process.argv.slice(2)
const { default: Server } = createRequire(import.meta.url)(file) as Module
const provider = {
  name: 'upstream',
  api_base_url: `${upstream}/v1/chat/completions`,
  api_key: 'upstream-key',
  models: ['vendor/model'],
}
await new Server({ logger: false, initialConfig: { HOST: '127.0.0.1', PORT: port, providers: [provider] } }).start()
