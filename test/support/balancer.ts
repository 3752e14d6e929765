/** Connections as a balancer hands them over: a PROXY header, then what the client says. */
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { writeProxyHeader } from '../../src/protocols/proxy/header.ts'
import { Dialogue } from './smtp-dialogue.ts'

export interface Balanced {
  host: string
  port: number
  /** Address of the balancer. */
  localAddress: string
  /** First bytes of the connection, or the client that a header of version 2 names. */
  header: Uint8Array | string
  implicitTls?: boolean
}

/** A connection whose header has been written. */
export async function balanced(t: TestContext, to: Balanced): Promise<Socket> {
  const { host, port, localAddress, header, implicitTls = false } = to
  const plain = connect({ host, port, localAddress, noDelay: true })
  t.after(() => plain.destroy())
  await new Promise<void>((resolve, reject) => plain.once('connect', resolve).once('error', reject))
  plain.write(typeof header === 'string' ? headerFor(header, port) : header)
  if (!implicitTls) return plain
  const secure = connectTls({ socket: plain, rejectUnauthorized: false })
  await new Promise<void>((resolve, reject) => secure.once('secureConnect', resolve).once('error', reject))
  return secure
}

/** An SMTP client behind a balancer; the greeting is the first reply. */
export const balancedDialogue = async (t: TestContext, to: Balanced): Promise<Dialogue> =>
  new Dialogue(await balanced(t, to))

const headerFor = (client: string, port: number) =>
  writeProxyHeader(
    { address: client, port: 40_000 },
    { address: client.includes(':') ? '::1' : '127.0.0.1', port },
  )

/** The status and the body of a request written in the same segment as the header; null: closed without an answer. */
export async function balancedRequest(
  t: TestContext,
  to: Balanced,
  head: readonly string[],
): Promise<{ status: number; text: string } | null> {
  const socket = await balanced(t, to)
  socket.write(`${[...head, 'Host: api.test', 'Connection: close'].join('\r\n')}\r\n\r\n`)
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk) => {
    text += chunk
  })
  await new Promise<void>((resolve) => socket.on('error', () => {}).once('close', () => resolve()))
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0)
  return status === 0 ? null : { status, text: text.slice(text.indexOf('\r\n\r\n') + 4) }
}
