/**
 * The sink: an SMTP server that accepts everything, the same for all systems. A separate process on raw sockets,
 * to cost little: it parses only command lines and the end of content, and writes the replies to input that
 * arrived together at once. Offers PIPELINING, 8BITMIME, SIZE, CHUNKING; no TLS.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { serveHelper } from './helper-process.ts'
import { monotonicMs } from './stats.ts'

export type SinkQuestion =
  /** Listens on the same port of each address, and answers that port. */
  | { kind: 'listen'; hosts: string[] }
  /** Resets the counts. `refuse`: recipient domains that get 451. `record`: domain whose recipients' times are kept. */
  | { kind: 'reset'; refuse: string[]; record: string | null }
  | { kind: 'refuse'; domains: string[] }
  | { kind: 'stats' }
  /** Times by recipient, if recorded. */
  | { kind: 'times' }

export interface SinkStats {
  port: number
  /** Recipients of messages that got a 250; one each in most scenarios. */
  count: number
  /** The same by recipient domain. */
  byDomain: Record<string, number>
  /** RCPT commands that got 451. */
  refused: number
  /** Messages with a DKIM-Signature field. */
  signed: number
  connections: number
  /** `monotonicMs` of the first and last 250 to content. */
  firstAt: number
  lastAt: number
  times?: Map<string, number>
}

const EHLO =
  '250-sink.bench\r\n250-PIPELINING\r\n250-SIZE 52428800\r\n250-8BITMIME\r\n250-CHUNKING\r\n250 ENHANCEDSTATUSCODES\r\n'
const END_OF_CONTENT = Buffer.from('\r\n.\r\n')
/** A signature is at the top, below Received fields at most. */
const SIGNATURE_WITHIN = 4_096
/** No client here sends a longer line. */
const LINE_MAX = 4_096

let port = 0
let refused: ReadonlySet<string> = new Set()
let record: string | null = null
let stats = emptyStats()

function emptyStats(): SinkStats {
  return {
    port,
    count: 0,
    byDomain: {},
    refused: 0,
    signed: 0,
    connections: 0,
    firstAt: 0,
    lastAt: 0,
    times: new Map(),
  }
}

class Session {
  #buffered: Buffer = Buffer.alloc(0)
  #inContent = false
  #sawBeginning = false
  #signed = false
  #recipients: string[] = []

  /** The replies to the input so far; `end`: the client has sent QUIT. */
  take(chunk: Buffer): { replies: string; end: boolean } {
    let buffer = this.#buffered.length > 0 ? Buffer.concat([this.#buffered, chunk]) : chunk
    let replies = ''
    for (;;) {
      if (this.#inContent) {
        if (!this.#sawBeginning) this.#lookForSignature(buffer)
        const end = buffer.indexOf(END_OF_CONTENT)
        if (end < 0) {
          // The end may be split between two reads.
          this.#buffered = Buffer.from(
            buffer.subarray(Math.max(0, buffer.length - END_OF_CONTENT.length + 1)),
          )
          return { replies, end: false }
        }
        buffer = buffer.subarray(end + END_OF_CONTENT.length)
        replies += this.#accept()
        continue
      }
      const end = buffer.indexOf('\r\n')
      if (end < 0) {
        this.#buffered = Buffer.from(buffer)
        return { replies, end: buffer.length > LINE_MAX }
      }
      const line = buffer.toString('latin1', 0, end)
      const chunk = /^BDAT (\d+) LAST$/i.exec(line)
      if (chunk) {
        const chunkEnd = end + 2 + Number(chunk[1])
        if (buffer.length < chunkEnd) {
          this.#buffered = Buffer.from(buffer)
          return { replies, end: false }
        }
        // With the line end before it, as after DATA.
        this.#lookForSignature(buffer.subarray(end, chunkEnd))
        buffer = buffer.subarray(chunkEnd)
        replies += this.#recipients.length > 0 ? this.#accept() : '503 5.5.1 no valid recipients\r\n'
        continue
      }
      // Content is scanned together with the line end before it, so that empty content ends too.
      const isData = /^data$/i.test(line) && this.#recipients.length > 0
      buffer = buffer.subarray(isData ? end : end + 2)
      if (isData) {
        this.#inContent = true
        this.#sawBeginning = false
        this.#signed = false
        replies += '354 go on\r\n'
      } else {
        replies += this.#reply(line)
        if (/^quit$/i.test(line)) return { replies, end: true }
      }
    }
  }

  #lookForSignature(buffer: Buffer): void {
    if (buffer.length <= 2) return
    this.#sawBeginning = true
    this.#signed = buffer.subarray(0, SIGNATURE_WITHIN).includes('\nDKIM-Signature:')
  }

  #reply(line: string): string {
    switch (line.slice(0, 4).toUpperCase()) {
      case 'EHLO':
        return EHLO
      case 'MAIL':
      case 'RSET':
        this.#recipients = []
        return '250 2.0.0 ok\r\n'
      case 'RCPT': {
        const address = line.slice(line.indexOf('<') + 1, line.indexOf('>'))
        if (refused.size > 0 && refused.has(domainOf(address))) {
          stats.refused++
          return '451 4.3.0 not now\r\n'
        }
        this.#recipients.push(address)
        return '250 2.1.5 ok\r\n'
      }
      case 'DATA':
        return '554 5.5.1 no valid recipients\r\n'
      case 'HELO':
      case 'NOOP':
        return '250 2.0.0 ok\r\n'
      case 'QUIT':
        return '221 2.0.0 bye\r\n'
      default:
        return '500 5.5.2 unknown\r\n'
    }
  }

  #accept(): string {
    const now = monotonicMs()
    if (stats.count === 0) stats.firstAt = now
    stats.lastAt = now
    stats.count += this.#recipients.length
    if (this.#signed) stats.signed++
    for (const address of this.#recipients) {
      const domain = domainOf(address)
      stats.byDomain[domain] = (stats.byDomain[domain] ?? 0) + 1
      if (domain === record) stats.times?.set(address, now)
    }
    this.#inContent = false
    this.#recipients = []
    return '250 2.0.0 taken\r\n'
  }
}

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1).toLowerCase()

function serve(socket: Socket): void {
  const session = new Session()
  stats.connections++
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    const { replies, end } = session.take(chunk)
    if (replies !== '') socket.write(replies)
    if (end) socket.end()
  })
  socket.write('220 sink.bench ESMTP\r\n')
}

async function listen(hosts: readonly string[]): Promise<void> {
  for (const host of hosts) {
    const server = createServer(serve)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host, backlog: 1_024 }, resolve)
    })
    port = (server.address() as AddressInfo).port
  }
}

if (process.send) {
  serveHelper<SinkQuestion, SinkStats>(async (question) => {
    if (question.kind === 'listen') await listen(question.hosts)
    if (question.kind === 'reset') {
      stats = emptyStats()
      record = question.record
      refused = new Set(question.refuse)
    }
    if (question.kind === 'refuse') refused = new Set(question.domains)
    const { times, ...rest } = { ...stats, port }
    return question.kind === 'times' && times ? { ...rest, times } : rest
  })
}
