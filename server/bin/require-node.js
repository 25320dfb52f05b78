// Read by whatever Node there is, so it is written in what old ones know.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(
    `farebox: this is Node ${process.versions.node}, and Node 24.12 or newer is needed: install it, or run the line behind scripts/with-node in a checkout\n`,
  )
  process.exit(1)
}
