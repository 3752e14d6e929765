/** One HTTP request written as bytes, well-formed or not, on its own connection. */
import { connect } from 'node:net'
import { HANG_MS } from './hang.ts'

export interface RawCall {
  host: string
  port: number
  /** Request line and header fields, without the empty line. */
  head: readonly string[]
  body: Buffer
  /** After the body: wait for the response, or first close our side, or cut the connection when `cut` resolves. */
  after: 'wait' | 'close' | { cut: () => Promise<unknown> }
}

/** The response's status; null: the connection ended without one. A stream of events is closed at its beginning. */
export function rawCall({ host, port, head, body, after }: RawCall): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true })
    let text = ''
    let status: number | null = null
    // A missing response is a fault of the service.
    const deadline = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no answer after ${HANG_MS} ms`))
    }, HANG_MS)
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
    // Writing a refused body may reset the connection; a response received before counts.
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
