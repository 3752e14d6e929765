/**
 * An SMTP server for tests, on raw sockets so that it can misbehave: it accepts and records everything, and replies
 * as configured.
 *
 *     const sink = await createSink()
 *     sink.on('RCPT TO:<b@example.net>', '450 4.2.2 mailbox full')
 *     sink.dropAt('DATA', { times: 1 })
 *     const held = sink.hold('DATA-DOT'); await held.reached; held.release()
 *     await sink.waitFor(3)
 *
 * Events are the commands as received (`MAIL FROM:<a@example.com> SIZE=1`) and CONNECT, BODY (the first bytes of
 * content have arrived) and DATA-DOT (all of it has). BDAT, understood if CHUNKING is among the extensions, is one event
 * when its content has arrived. A rule names an event or its first words, case-insensitively; the
 * latest rule wins. Only CRLF.CRLF ends content.
 */
import { createServer, type Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'

export interface SinkMessage {
  envelope: { from: string; to: string[] }
  /** The whole message, dots unstuffed. */
  raw: Buffer
  /** The content as received, without the final dot. */
  wire: Buffer
  tls: boolean
  auth?: string
  helo: string
  /** IP address that the client came from. */
  remoteAddress: string
  receivedAt: Date
  /** Number of the connection, from 1. */
  connection: number
}

export interface SinkOptions {
  host?: string
  port?: number
  /** Offers STARTTLS, or with `implicit` starts TLS at once. */
  tls?: { key: string; cert: string; implicit?: boolean }
  /** EHLO lines; STARTTLS and AUTH are added when `tls` and `auth` are given. */
  extensions?: readonly string[]
  auth?: { user: string; password: string }
}

/** The reply without the last CRLF; null: none, and the event has no effect. */
export type Answer = string | null | ((session: SinkSession, event: string) => Answered | Promise<Answered>)
type Answered = string | null

export interface SinkSession {
  readonly connection: number
  /** IP address that the client came from. */
  readonly remoteAddress: string
  readonly secure: boolean
  write(raw: string | Buffer): void
  /** Closes the connection; `reset`: by RST, as a crash would. */
  drop(reset?: boolean): void
  /** Counts the message as received, whatever the reply. Only at DATA-DOT. */
  accept(): void
}

export interface Sink {
  readonly host: string
  readonly port: number
  readonly messages: SinkMessage[]
  /** Command lines of all connections in order of arrival, as `[connection, line]`. */
  readonly commands: [connection: number, line: string][]
  readonly connections: { open: number; peak: number; total: number }
  /** Always, or the next `times` times. */
  on(event: string, answer: Answer, options?: { times?: number }): void
  dropAt(event: string, options?: { times?: number; reset?: boolean; accept?: boolean }): void
  /** Holds the next such event until released, with the usual reply or another one. */
  hold(event: string): { reached: Promise<SinkSession>; release(answer?: string): void }
  /** Removes all rules. */
  clearRules(): void
  /** Resolves when this many messages have arrived in all. */
  waitFor(count: number): Promise<SinkMessage[]>
  /** Resolves when no connection is open. */
  idle(): Promise<void>
  close(): Promise<void>
}

export const DEFAULT_EXTENSIONS = [
  'PIPELINING',
  '8BITMIME',
  'SMTPUTF8',
  'ENHANCEDSTATUSCODES',
  'SIZE 52428800',
]

const BUFFER_MAX = 256 * 1024

interface Rule {
  event: string
  answer: Answer
  left: number
}

interface Shared {
  options: SinkOptions
  context: SecureContext | null
  messages: SinkMessage[]
  commands: [number, string][]
  rules: Rule[]
  changed(): void
}

export async function createSink(options: SinkOptions = {}): Promise<Sink> {
  const sessions = new Set<Session>()
  const waiters = new Set<() => void>()
  const connections = { open: 0, peak: 0, total: 0 }
  const shared: Shared = {
    options,
    context: options.tls === undefined ? null : createSecureContext(options.tls),
    messages: [],
    commands: [],
    rules: [],
    changed: () => {
      for (const check of [...waiters]) check()
    },
  }
  const server = createServer((socket) => {
    connections.total++
    connections.open++
    connections.peak = Math.max(connections.peak, connections.open)
    const session = new Session(socket, connections.total, shared)
    sessions.add(session)
    socket.on('close', () => {
      sessions.delete(session)
      connections.open--
      shared.changed()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve)
  })
  const address = server.address() as { address: string; port: number }
  const until = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      const check = () => {
        if (!condition()) return
        waiters.delete(check)
        resolve()
      }
      waiters.add(check)
      check()
    })
  const on: Sink['on'] = (event, answer, { times = Number.POSITIVE_INFINITY } = {}) => {
    shared.rules.unshift({ event: event.toUpperCase(), answer, left: times })
  }
  return {
    host: address.address,
    port: address.port,
    messages: shared.messages,
    commands: shared.commands,
    connections,
    on,
    dropAt(event, { times, reset, accept } = {}) {
      const drop: Answer = (session) => {
        if (accept) session.accept()
        session.drop(reset)
        return null
      }
      on(event, drop, times === undefined ? {} : { times })
    },
    hold(event) {
      const reached = Promise.withResolvers<SinkSession>()
      const released = Promise.withResolvers<string | undefined>()
      const answer: Answer = async (session, name) => {
        reached.resolve(session)
        return (await released.promise) ?? (session as Session).usual(name)
      }
      on(event, answer, { times: 1 })
      return { reached: reached.promise, release: (other) => released.resolve(other) }
    },
    clearRules() {
      shared.rules.length = 0
    },
    async waitFor(count) {
      await until(() => shared.messages.length >= count)
      return shared.messages
    },
    idle: () => until(() => connections.open === 0),
    async close() {
      for (const session of sessions) session.drop()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

class Session implements SinkSession {
  readonly connection: number
  secure = false
  #socket: Socket
  readonly #shared: Shared
  #buffer: Buffer = Buffer.alloc(0)
  #busy = false
  #helo = ''
  readonly remoteAddress: string
  #auth: string | undefined
  #from: string | null = null
  #to: string[] = []
  /** Input after BDAT, while that is being answered. */
  #chunk: Buffer | null = null
  /** Content so far, while it is being received. */
  #content: Buffer[] | null = null
  #bodySeen = false
  #accepted = false
  /** Responses since AUTH, while it is in progress. */
  #login: string[] | null = null

  constructor(socket: Socket, connection: number, shared: Shared) {
    this.#socket = socket
    this.connection = connection
    this.#shared = shared
    this.remoteAddress = socket.remoteAddress ?? ''
    if (shared.options.tls?.implicit) this.#secure()
    else this.#attach(socket)
    this.#run(() => this.#answer('CONNECT'))
  }

  write(raw: string | Buffer): void {
    if (!this.#socket.destroyed) this.#socket.write(raw)
  }

  drop(reset = false): void {
    if (reset && !this.secure) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
  }

  accept(): void {
    if (this.#accepted || (this.#content === null && this.#chunk === null)) return
    this.#accepted = true
    const wire = this.#chunk ?? Buffer.concat(this.#content ?? [])
    this.#shared.messages.push({
      envelope: { from: this.#from ?? '', to: this.#to },
      raw: this.#chunk ? wire : unstuff(wire),
      wire,
      tls: this.secure,
      ...(this.#auth === undefined ? {} : { auth: this.#auth }),
      helo: this.#helo,
      remoteAddress: this.remoteAddress,
      receivedAt: new Date(),
      connection: this.connection,
    })
    this.#shared.changed()
  }

  #attach(socket: Socket): void {
    socket.setNoDelay(true)
    socket.on('error', () => {}) // errors of clients are up to their tests
    socket.on('data', (bytes: Buffer) => {
      this.#buffer = this.#buffer.length === 0 ? bytes : Buffer.concat([this.#buffer, bytes])
      // A sink that is held reads no more than this, so that clients notice.
      if (this.#busy && this.#buffer.length > BUFFER_MAX) socket.pause()
      this.#run(async () => {})
    })
  }

  #secure(): void {
    const plain = this.#socket
    plain.removeAllListeners('data')
    plain.on('error', () => {})
    this.#buffer = Buffer.alloc(0)
    const { context } = this.#shared
    if (context === null) {
      // STARTTLS without a certificate: offered but not kept.
      plain.on('data', () => this.write('500 5.5.2 what?\r\n'))
      return
    }
    this.#socket = new TLSSocket(plain, { isServer: true, secureContext: context })
    this.secure = true
    this.#helo = ''
    this.#attach(this.#socket)
  }

  /** Sequential: replies may be delayed, and input waits in the buffer meanwhile. */
  async #run(first: () => Promise<void>): Promise<void> {
    if (this.#busy) return
    this.#busy = true
    await first()
    while (!this.#socket.destroyed && (await this.#step()));
    this.#busy = false
    this.#socket.resume()
  }

  /** Takes one line, or some content, from the buffer; false when nothing is complete. */
  async #step(): Promise<boolean> {
    if (this.#content !== null) return this.#receiveContent(this.#content)
    const end = this.#buffer.indexOf('\r\n')
    if (end < 0) return false
    const line = this.#buffer.subarray(0, end).toString()
    const chunk = this.#takesChunks() ? /^BDAT (\d+) LAST$/i.exec(line) : null
    const chunkEnd = end + 2 + Number(chunk?.[1] ?? 0)
    if (this.#buffer.length < chunkEnd) return false
    if (chunk) this.#chunk = this.#buffer.subarray(end + 2, chunkEnd)
    this.#buffer = this.#buffer.subarray(chunkEnd)
    this.#shared.commands.push([this.connection, line])
    await this.#answer(line)
    this.#chunk = null
    return true
  }

  #takesChunks(): boolean {
    return this.#shared.options.extensions?.includes('CHUNKING') ?? false
  }

  async #receiveContent(content: Buffer[]): Promise<boolean> {
    if (this.#buffer.length === 0) return false
    if (!this.#bodySeen) {
      this.#bodySeen = true
      const answer = await this.#answerOf('BODY')
      if (answer !== null && answer !== '') this.write(`${answer}\r\n`)
      return true
    }
    // The line end before the dot may be the one after DATA, or in an earlier piece.
    const tail = Buffer.concat([Buffer.from('\r\n'), ...content.slice(-4)]).subarray(-4)
    const searched = Buffer.concat([tail, this.#buffer])
    const end = searched.indexOf('\r\n.\r\n')
    if (end < 0) {
      content.push(this.#buffer)
      this.#buffer = Buffer.alloc(0)
      return false
    }
    const dot = end + 2 - tail.length
    if (dot >= 0) content.push(this.#buffer.subarray(0, dot))
    else content.splice(0, content.length, Buffer.concat(content).subarray(0, dot))
    this.#buffer = this.#buffer.subarray(dot + 3)
    await this.#answer('DATA-DOT')
    return true
  }

  async #answer(event: string): Promise<void> {
    const answer = await this.#answerOf(event)
    if (answer === null || this.#socket.destroyed) return
    const code = Number(
      /^(\d{3})(?: .*)?$/.exec(answer.split('\r\n').findLast((line) => line !== '') ?? '')?.[1] ?? 0,
    )
    this.#apply(event, code)
    this.write(`${answer}\r\n`)
    const verb = event.toUpperCase().slice(0, 8)
    if (verb.startsWith('QUIT')) this.#socket.end()
    if (verb === 'STARTTLS' && answer.startsWith('220')) this.#secure()
  }

  async #answerOf(event: string): Promise<string | null> {
    const rule = this.#shared.rules.find(({ event: name, left }) => left > 0 && matches(event, name))
    if (rule === undefined) return this.usual(event)
    rule.left--
    return typeof rule.answer === 'function' ? await rule.answer(this, event) : rule.answer
  }

  /** The effect of the reply to an event on the transaction. */
  #apply(event: string, code: number): void {
    const verb = event.toUpperCase()
    const positive = code >= 200 && code < 300
    if (/^(?:EHLO|HELO) /.test(verb) && positive) this.#helo = event.slice(5)
    if (verb.startsWith('MAIL FROM:') && positive) {
      this.#from = pathOf(event)
      this.#to = []
    }
    if (verb.startsWith('RCPT TO:') && positive) this.#to.push(pathOf(event))
    if (verb === 'DATA' && code === 354) {
      this.#content = []
      this.#bodySeen = false
      this.#accepted = false
    }
    if (verb === 'DATA-DOT') {
      if (positive) this.accept()
      this.#content = null
    }
    if (this.#chunk !== null) {
      this.#accepted = false
      if (positive) this.accept()
    }
    if (this.#chunk !== null || verb === 'RSET' || verb === 'DATA-DOT' || /^(?:EHLO|HELO) /.test(verb)) {
      this.#from = null
      this.#to = []
    }
  }

  usual(event: string): string {
    const step = this.#loginStep(event)
    if (step !== null) return step
    const verb = /^[A-Z]+(?:-DOT)?/i.exec(event)?.[0]?.toUpperCase() ?? ''
    if (verb === 'EHLO') return this.#ehlo()
    if (verb === 'AUTH') return this.#authenticate(event)
    if (verb === 'MAIL') return this.#from === null ? '250 2.1.0 Ok' : '503 5.5.1 nested MAIL'
    if (verb === 'RCPT') return this.#from === null ? '503 5.5.1 MAIL first' : '250 2.1.5 Ok'
    if (verb === 'DATA') return this.#to.length > 0 ? '354 go on' : '554 5.5.1 no valid recipients'
    if (verb === 'BDAT' && this.#chunk) {
      return this.#to.length > 0 ? this.usual('DATA-DOT') : '503 5.5.1 no valid recipients'
    }
    const fixed: Record<string, string> = {
      CONNECT: '220 sink.test ESMTP',
      BODY: '',
      HELO: '250 sink.test',
      STARTTLS: '220 2.0.0 Ready',
      'DATA-DOT': `250 2.0.0 Ok: queued as ${this.#shared.messages.length + 1}`,
      RSET: '250 2.0.0 Ok',
      NOOP: '250 2.0.0 Ok',
      QUIT: '221 2.0.0 Bye',
    }
    return fixed[verb] ?? '500 5.5.2 what?'
  }

  #ehlo(): string {
    const { tls, auth, extensions = DEFAULT_EXTENSIONS } = this.#shared.options
    const lines = ['sink.test', ...extensions]
    if (tls !== undefined && !this.secure) lines.push('STARTTLS')
    if (auth !== undefined) lines.push('AUTH PLAIN LOGIN')
    return lines.map((line, index) => `250${index < lines.length - 1 ? '-' : ' '}${line}`).join('\r\n')
  }

  #authenticate(line: string): string {
    const [, mechanism = '', initial] = line.split(' ')
    this.#login = []
    if (mechanism.toUpperCase() === 'LOGIN') return '334 VXNlcm5hbWU6'
    if (initial === undefined) return '334 '
    return this.#checkLogin(Buffer.from(initial, 'base64').toString().split('\0').slice(1))
  }

  /** A line within AUTH; null outside. */
  #loginStep(line: string): string | null {
    if (this.#login === null) return null
    const text = Buffer.from(line, 'base64').toString()
    if (text.startsWith('\0')) return this.#checkLogin(text.split('\0').slice(1))
    this.#login.push(text)
    return this.#login.length < 2 ? '334 UGFzc3dvcmQ6' : this.#checkLogin(this.#login)
  }

  #checkLogin([user, password]: string[]): string {
    const { auth } = this.#shared.options
    this.#login = null
    if (user !== auth?.user || password !== auth?.password) return '535 5.7.8 wrong'
    this.#auth = user ?? ''
    return '235 2.7.0 welcome'
  }
}

/** A rule matches the name of an event, or its first words. */
function matches(event: string, name: string): boolean {
  const upper = event.toUpperCase()
  return upper === name || (upper.startsWith(name) && /[ :]/.test(upper[name.length] as string))
}

function pathOf(command: string): string {
  return /<(.*?)>/.exec(command)?.[1] ?? ''
}

function unstuff(wire: Buffer): Buffer {
  if (!wire.includes('\r\n.') && wire[0] !== 46) return wire
  return Buffer.from(wire.toString('latin1').replace(/(^|\r\n)\./g, '$1'), 'latin1')
}
