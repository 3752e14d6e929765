/**
 * The load generator over HTTP: a separate process with raw sockets, prepared request bytes and keep-alive
 * connections with one request in flight on each. Of a response it reads the status line and Content-Length.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { serveHelper } from './helper-process.ts'
import { type LoadAmount, type LoadResult, NumberedBytes, Schedule, Tally } from './load.ts'
import { monotonicMs } from './stats.ts'

export interface HttpLoad extends LoadAmount {
  host: string
  port: number
  /** Whole requests, header and body, with NUMBER_MARKs, which are sent in turn. */
  requests: readonly string[]
  connections: number
  record: boolean
  /** A 429 is not a failure: this load is expected to be limited. */
  mayBeLimited?: boolean
}

/** Enough for the response to a send request. */
const READ_BYTES = 4096
/** A response that takes longer counts as failed and closes the connection. */
const ANSWER_LIMIT_MS = 120_000
/** After this many failures the run ends. */
const FAILURES_MAX = 100

if (process.send) serveHelper<HttpLoad, LoadResult>(run)

async function run(load: HttpLoad): Promise<LoadResult> {
  const tally = new Tally(load.record)
  const schedule = new Schedule(load)
  const failures = { left: FAILURES_MAX }
  await Promise.all(Array.from({ length: load.connections }, () => runLane(load, schedule, tally, failures)))
  return tally.result()
}

/** One connection at a time, reopened when it ends. */
async function runLane(
  load: HttpLoad,
  schedule: Schedule,
  tally: Tally,
  failures: { left: number },
): Promise<void> {
  const requests = load.requests.map((request) => new NumberedBytes(request))
  let client: Client | null = null
  for (;;) {
    const next = schedule.next()
    const number = next instanceof Promise ? await next : next
    if (number === null || failures.left <= 0) break
    const begunAt = monotonicMs()
    try {
      client ??= await openClient(load)
      const request = requests[number % requests.length] as NumberedBytes
      const answer = await client.exchange(request.with(number))
      if (answer.status === 200) tally.accepted(number, begunAt, monotonicMs())
      else if (answer.status === 429 && load.mayBeLimited) tally.limited(answer.hasRetryAfter)
      else {
        failures.left--
        tally.failed(`${answer.status} ${answer.body}`)
      }
    } catch (error) {
      failures.left--
      tally.failed(String(error))
      client?.close()
      client = null
    }
  }
  client?.close()
}

interface Answer {
  status: number
  hasRetryAfter: boolean
  body: string
}

interface Client {
  exchange(request: Buffer): Promise<Answer>
  close(): void
}

async function openClient({ host, port }: HttpLoad): Promise<Client> {
  // One buffer for all responses. With a new one for each, and a search for a refusal's fields in each, a request
  // took this process 22 us instead of 19.
  const memory = Buffer.alloc(READ_BYTES)
  const callback = (size: number) => {
    take(memory.subarray(0, size))
    return true
  }
  const socket = connect({ host, port, noDelay: true, onread: { buffer: memory, callback } })
  await once(socket, 'connect')
  let waiting: { resolve(answer: Answer): void; reject(error: Error): void } | null = null
  /** The bytes of an incomplete response. */
  let partial: Buffer | null = null
  const fail = (error: Error) => {
    socket.destroy()
    waiting?.reject(error)
    waiting = null
  }
  socket.setTimeout(ANSWER_LIMIT_MS, () => fail(new Error('no answer in time')))
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the connection was closed')))
  function take(bytes: Buffer): void {
    const all = partial === null ? bytes : Buffer.concat([partial, bytes])
    const answer = parseAnswer(all)
    partial = answer === null ? Buffer.from(all) : null
    if (answer === null) return
    waiting?.resolve(answer)
    waiting = null
  }
  return {
    exchange: (request) =>
      new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new Error('the connection was closed'))
        waiting = { resolve, reject }
        socket.write(request)
      }),
    close: () => {
      socket.destroy()
    },
  }
}

/** Null while it is incomplete. */
export function parseAnswer(buffer: Buffer): Answer | null {
  const end = buffer.indexOf('\r\n\r\n')
  if (end < 0) return null
  const head = buffer.toString('latin1', 0, end)
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  if (buffer.length < end + 4 + length) return null
  // "HTTP/1.1 200 OK"
  const status = Number(head.slice(9, 12))
  if (status === 200) return { status, hasRetryAfter: false, body: '' }
  return {
    status,
    hasRetryAfter: /\r\nretry-after: *\d/i.test(head),
    body: buffer.toString('utf8', end + 4, end + 4 + length),
  }
}
