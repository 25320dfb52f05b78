import { loadChanges } from './changes.ts'
import { serve } from './serve.ts'

/** `node harness/serve-changed.ts <module>`: the real server with the changes that a module of a test exports. */
const changes = await loadChanges(process.argv[2])
await serve(changes(process.env))
