import './require-node.js'

// An old Node, which has been told so by now, does not know this function. Where the folder cannot be written, nothing is kept.
const { enableCompileCache } = await import('node:module')
enableCompileCache(`${import.meta.dirname}/compile-cache`)
await import('./server.js')
