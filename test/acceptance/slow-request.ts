import { once } from 'node:events'
import { connect } from 'node:net'

/** A POST whose body stops in its middle until it is finished; then its status. */
export async function openSlowly(url: string, secret: string, path: string, body: unknown) {
  const { hostname, port } = new URL(url)
  const text = JSON.stringify(body)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text.slice(0, 5)}`,
  )
  return {
    async finish(): Promise<number> {
      socket.write(text.slice(5))
      const [answer] = await once(socket, 'data')
      socket.destroy()
      return Number(/^HTTP\/1\.1 (\d{3})/.exec(String(answer))?.[1])
    },
  }
}
