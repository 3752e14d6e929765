/**
 * The load generator over SMTP: the same message bytes to Postfix and to our own submission port. A separate
 * process; sessions stay open, envelope commands are sent in one write (RFC 2920), content follows the 354.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { serveHelper } from './helper-process.ts'
import { type LoadAmount, type LoadResult, NUMBER_MARK, numberText, Schedule, Tally } from './load.ts'
import { monotonicMs } from './stats.ts'

export interface SmtpLoad extends LoadAmount {
  host: string
  port: number
  sessions: number
  login: { user: string; password: string } | null
  from: string
  /** With NUMBER_MARKs, as `content`. */
  to: string
  /** Without the final dot; no line begins with one. */
  content: string
  record: boolean
}

const REPLY_LIMIT_MS = 120_000
/** Below the servers' limit of messages per session; then a new one is opened. */
const MESSAGES_PER_SESSION = 500
const FAILURES_MAX = 100

if (process.send) serveHelper<SmtpLoad, LoadResult>(run)

async function run(load: SmtpLoad): Promise<LoadResult> {
  const tally = new Tally(load.record)
  const schedule = new Schedule(load)
  const failures = { left: FAILURES_MAX }
  await Promise.all(Array.from({ length: load.sessions }, () => runLane(load, schedule, tally, failures)))
  return tally.result()
}

async function runLane(
  load: SmtpLoad,
  schedule: Schedule,
  tally: Tally,
  failures: { left: number },
): Promise<void> {
  let session: Session | null = null
  for (;;) {
    const next = schedule.next()
    const number = next instanceof Promise ? await next : next
    if (number === null || failures.left <= 0) break
    const begunAt = monotonicMs()
    try {
      if (session && session.sent >= MESSAGES_PER_SESSION) {
        await session.quit()
        session = null
      }
      session ??= await openSession(load)
      await session.send(number)
      tally.accepted(number, begunAt, monotonicMs())
    } catch (error) {
      failures.left--
      tally.failed(String(error))
      session?.close()
      session = null
    }
  }
  await session?.quit()
}

async function openSession(load: SmtpLoad): Promise<Session> {
  const socket = connect({ host: load.host, port: load.port, noDelay: true })
  await once(socket, 'connect')
  const session = new Session(socket, load)
  await session.begin()
  return session
}

class Session {
  sent = 0
  readonly #socket: Socket
  readonly #load: SmtpLoad
  #text = ''
  #replies: string[] = []
  #wake: (() => void) | null = null
  #error: Error | null = null

  constructor(socket: Socket, load: SmtpLoad) {
    this.#socket = socket
    this.#load = load
    const fail = (error: Error) => {
      this.#error ??= error
      socket.destroy()
      this.#wake?.()
    }
    socket.setTimeout(REPLY_LIMIT_MS, () => fail(new Error('no reply in time')))
    socket.on('error', fail)
    socket.on('close', () => fail(new Error('the session was closed')))
    socket.on('data', (chunk) => {
      this.#text += chunk.toString('latin1')
      for (let end = this.#text.indexOf('\r\n'); end >= 0; end = this.#text.indexOf('\r\n')) {
        const line = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        if (line[3] !== '-') this.#replies.push(line)
      }
      this.#wake?.()
    })
  }

  async begin(): Promise<void> {
    await this.#expect(['220'])
    this.#socket.write('EHLO load.bench\r\n')
    await this.#expect(['250'])
    const { login } = this.#load
    if (!login) return
    const secret = Buffer.from(`\0${login.user}\0${login.password}`).toString('base64')
    this.#socket.write(`AUTH PLAIN ${secret}\r\n`)
    await this.#expect(['235'])
  }

  async send(number: number): Promise<void> {
    const { from, to, content } = this.#load
    const digits = numberText(number)
    const recipient = to.replaceAll(NUMBER_MARK, digits)
    this.#socket.write(`MAIL FROM:<${from}>\r\nRCPT TO:<${recipient}>\r\nDATA\r\n`)
    await this.#expect(['250', '250', '354'])
    this.#socket.write(`${content.replaceAll(NUMBER_MARK, digits)}\r\n.\r\n`, 'latin1')
    await this.#expect(['250'])
    this.sent++
  }

  async quit(): Promise<void> {
    this.#socket.write('QUIT\r\n')
    await this.#expect(['221']).catch(() => {}) // its outcome does not matter
    this.close()
  }

  close(): void {
    this.#socket.destroy()
  }

  async #expect(codes: readonly string[]): Promise<void> {
    for (const code of codes) {
      while (this.#replies.length === 0) {
        if (this.#error) throw this.#error
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = null
      }
      const reply = this.#replies.shift() as string
      if (!reply.startsWith(code)) throw new Error(`expected ${code}, got ${reply}`)
    }
  }
}
