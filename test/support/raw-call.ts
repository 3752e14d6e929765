/** One HTTP request written as bytes, well-formed or not, on a connection of its own. */
import { connect } from 'node:net'

export interface RawCall {
  host: string
  port: number
  /** Request line and header fields, without those that end it. */
  head: readonly string[]
  body: Buffer
  /** Once the body is out: wait for the answer, or first close our side, or cut the connection when `cut` resolves. */
  after: 'wait' | 'close' | { cut: () => Promise<unknown> }
}

/** An answer that never comes is a fault of the service. */
const ANSWER_MAX_MS = 30_000

/** The answer's status; null: the connection ended without one. A stream of events is ended at its beginning. */
export function rawCall({ host, port, head, body, after }: RawCall): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true })
    let text = ''
    let status: number | null = null
    const deadline = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no answer after ${ANSWER_MAX_MS} ms`))
    }, ANSWER_MAX_MS)
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      if (status !== null) return
      text += chunk
      const headEnd = text.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)
      if (/^content-type: text\/event-stream/im.test(text.slice(0, headEnd))) socket.destroy()
      text = ''
    })
    // A refused body that we still write may cost the connection; what was answered before counts.
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      clearTimeout(deadline)
      resolve(status)
    })
    socket.write(`${head.join('\r\n')}\r\nConnection: close\r\n\r\n`)
    socket.write(body, () => {
      if (after === 'close') socket.end()
      else if (after !== 'wait') after.cut().then(() => socket.destroy(), reject)
    })
  })
}
