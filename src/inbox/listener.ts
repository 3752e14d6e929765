/**
 * The server that captured mail is delivered to: real SMTP over loopback, so that development sees what a
 * receiving server would get. It takes mail only from this process: the login is random and made at each start.
 */
import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { equalSecrets } from '../store/sealing.ts'

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
): Promise<CaptureListener> {
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
    onData(stream, session, done) {
      take(stream, session, receive).then(
        () => done(null, 'Captured'),
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

async function take(
  stream: SMTPServerDataStream,
  session: SMTPServerSession,
  receive: (mail: CapturedMail) => Promise<void>,
): Promise<void> {
  const parts: Buffer[] = []
  for await (const bytes of stream) parts.push(bytes as Buffer)
  if (stream.sizeExceeded) throw new Error('The message is over the announced limit')
  const { mailFrom, rcptTo } = session.envelope
  await receive({
    from: mailFrom ? mailFrom.address : '',
    to: rcptTo.map(({ address }) => address),
    raw: Buffer.concat(parts),
  })
}
