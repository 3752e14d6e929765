/** An SMTP client that a test controls byte by byte, correct or not. */
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'

export class Dialogue {
  #socket: Socket
  #received = ''
  #closed = false
  #wake: (() => void) | null = null

  constructor(socket: Socket) {
    this.#socket = socket
    this.#attach()
  }

  /** Connects; the greeting is the first reply. */
  static async open({ host, port, implicitTls = false, localAddress }: Peer): Promise<Dialogue> {
    const socket = implicitTls
      ? connectTls({ host, port, rejectUnauthorized: false })
      : connect({ host, port, noDelay: true, ...(localAddress !== undefined && { localAddress }) })
    await new Promise<void>((resolve, reject) => {
      socket.once(implicitTls ? 'secureConnect' : 'connect', resolve)
      socket.once('error', reject)
    })
    return new Dialogue(socket)
  }

  /** Writes the bytes unchanged. */
  write(bytes: string | Uint8Array): void {
    this.#socket.write(bytes)
  }

  /** Closes only our side. */
  endWriting(): void {
    this.#socket.end()
  }

  /** The next reply, all its lines without the last CRLF; null when the connection ends first. */
  async reply(): Promise<string | null> {
    for (;;) {
      const match = /^(?:\d{3}-[^\r\n]*\r\n)*\d{3}(?: [^\r\n]*)?\r\n/.exec(this.#received)
      if (match) {
        this.#received = this.#received.slice(match[0].length)
        return match[0].slice(0, -2)
      }
      if (this.#closed) return null
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Sends one line and returns its reply. */
  async say(line: string): Promise<string | null> {
    this.write(`${line}\r\n`)
    return this.reply()
  }

  /** All replies until the server closes. */
  async rest(): Promise<string[]> {
    const replies: string[] = []
    for (let reply = await this.reply(); reply !== null; reply = await this.reply()) replies.push(reply)
    return replies
  }

  /** The handshake, after the reply to `STARTTLS`. Rejects when it fails. */
  async secure({ rejectUnauthorized = false } = {}): Promise<void> {
    const plain = this.#socket
    plain.removeAllListeners()
    this.#socket = connectTls({ socket: plain, rejectUnauthorized })
    await new Promise<void>((resolve, reject) => {
      this.#socket.once('secureConnect', resolve)
      this.#socket.once('error', reject)
      this.#socket.once('close', () => reject(new Error('closed in the handshake')))
    })
    this.#attach()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #attach(): void {
    this.#socket.setEncoding('latin1')
    const wake = () => this.#wake?.()
    const end = () => {
      this.#closed = true
      wake()
    }
    this.#socket
      .on('data', (text: string) => {
        this.#received += text
        wake()
      })
      .on('error', end)
      .on('end', end)
      .on('close', end)
  }
}

export interface Peer {
  host: string
  port: number
  implicitTls?: boolean
  /** Local address; only without implicit TLS. */
  localAddress?: string
}

/** Connects; the greeting is the first reply. Ends with the test. */
export async function openDialogue(t: TestContext, to: Peer): Promise<Dialogue> {
  const dialogue = await Dialogue.open(to)
  t.after(() => dialogue.destroy())
  return dialogue
}

/** Initial response of AUTH PLAIN. */
export const plainLogin = (user: string, password: string) =>
  Buffer.from(`\0${user}\0${password}`).toString('base64')
