/**
 * The server that captured mail is delivered to: real SMTP over loopback, so that development sees what a
 * receiving server would get. It takes mail only from this process: the login is random and made at each start.
 */
import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { equalSecrets } from '../store/sealing.ts'
import type { FaultReply, Faults } from './faults.ts'

export interface CapturedMail {
  from: string
  to: string[]
  raw: Buffer
}

export interface CaptureListener {
  host: string
  port: number
  auth: { user: string; password: string }
  close(): Promise<void>
}

/** Somewhat over the largest message that the service accepts, for header fields added at delivery. */
const MESSAGE_BYTES_MAX = 26 * 1024 * 1024
const USER = 'capture'

/** Listens on a free port of 127.0.0.1; `receive` resolves once the mail is on disk, then the dot is answered. */
export async function startCaptureListener(
  receive: (mail: CapturedMail) => Promise<void>,
  log: Logger,
  faulty: {
    faults: Faults
    /** The recipient that a return path stands for. */
    recipientOf(returnPath: string): Promise<string | null>
  },
): Promise<CaptureListener> {
  const { faults } = faulty
  /** Answers with the fault of this stage if there is one, else as usual. */
  const orFault = (
    stage: Parameters<Faults['at']>[0],
    recipients: () => Promise<readonly string[]>,
    done: (error?: Error | null) => void,
  ) => {
    faults.at(stage, recipients).then(
      (reply) => done(reply && replyError(reply)),
      (error) => {
        log.error({ err: error }, 'cannot read the faults of the inbox')
        done()
      },
    )
  }
  const password = randomBytes(24).toString('base64url')
  const server = new SMTPServer({
    name: 'inbox.sendwright.localhost',
    banner: 'captured mail',
    size: MESSAGE_BYTES_MAX,
    // The connection never leaves the machine; TLS on it would protect nothing.
    hideSTARTTLS: true,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    authMethods: ['PLAIN'],
    disableReverseLookup: true,
    onAuth(auth, _session, done) {
      const known = auth.username === USER && equalSecrets(auth.password ?? '', password)
      if (known) done(null, { user: USER })
      else done(Object.assign(new Error('Authentication failed'), { responseCode: 535 }))
    },
    onConnect(session, done) {
      answerData(server, session, faults)
      orFault('connect', async () => [], done)
    },
    onMailFrom({ address }, session, done) {
      const recipients = async () => [(await faulty.recipientOf(address)) ?? '']
      const first = session.transaction <= 1
      if (first) orFault('mail', recipients, done)
      else {
        // A connection that is used again would slip by a fault at its beginning.
        orFault('connect', recipients, (refused) => {
          if (refused) done(replyError({ code: 421, text: '4.3.0 Connect again' }))
          else orFault('mail', recipients, done)
        })
      }
    },
    onRcptTo({ address }, _session, done) {
      orFault('rcpt', async () => [address], done)
    },
    onData(stream, session, done) {
      take(stream, session, receive, faults).then(
        (reply) => (reply ? done(replyError(reply)) : done(null, 'Captured')),
        (error) => {
          log.error({ err: error }, 'cannot store captured mail')
          done(Object.assign(new Error('Cannot store the message now'), { responseCode: 451 }))
        },
      )
    },
  })
  server.on('error', (error) => log.warn({ err: error }, 'capture listener'))
  await new Promise<void>((resolve, reject) => {
    server.server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.server.address() as AddressInfo
  return {
    host: '127.0.0.1',
    port,
    auth: { user: USER, password },
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

const replyError = ({ code, text }: FaultReply) => Object.assign(new Error(text), { responseCode: code })

const recipientsOf = ({ envelope }: SMTPServerSession) => envelope.rcptTo.map(({ address }) => address)

/** The part of the library's connection that answers DATA: it offers no hook before the 354. */
interface DataConnection {
  session: SMTPServerSession
  handler_DATA(command: unknown, done: () => void): void
  send(code: number, text: string): void
}

/** Lets a fault answer the DATA command itself. */
function answerData(server: SMTPServer, session: SMTPServerSession, faults: Faults): void {
  const connections = [...(server.connections as unknown as Set<DataConnection>)]
  const connection = connections.find((other) => other.session === session)
  if (typeof connection?.handler_DATA !== 'function')
    throw new Error('The SMTP server library answers DATA in another way than it did')
  const usual = connection.handler_DATA.bind(connection)
  connection.handler_DATA = (command, done) => {
    faults
      .at('data', async () => recipientsOf(session))
      .then(
        (reply) => {
          if (!reply) return usual(command, done)
          connection.send(reply.code, reply.text)
          done()
        },
        () => usual(command, done),
      )
  }
}

/** Stores the mail, unless a fault answers its final dot. */
async function take(
  stream: SMTPServerDataStream,
  session: SMTPServerSession,
  receive: (mail: CapturedMail) => Promise<void>,
  faults: Faults,
): Promise<FaultReply | null> {
  const parts: Buffer[] = []
  for await (const bytes of stream) parts.push(bytes as Buffer)
  if (stream.sizeExceeded) throw new Error('The message is over the announced limit')
  const to = recipientsOf(session)
  const reply = await faults.at('dot', async () => to)
  if (reply) return reply
  const { mailFrom } = session.envelope
  await receive({ from: mailFrom ? mailFrom.address : '', to, raw: Buffer.concat(parts) })
  return null
}
