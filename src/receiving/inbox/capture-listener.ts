/**
 * The server that captured mail is delivered to: real SMTP over loopback, so that development sees what a
 * receiving server would get. It accepts mail only from this process: the login is random and made at each start.
 *
 * The session of `src/receiving/sessions` serves it; faults are refusals at the stage that they name.
 */
import { randomBytes } from 'node:crypto'
import { createFaultLog } from '../../base/process/fault-log.ts'
import type { Core } from '../../core.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import { equalSecrets } from '../../platform/store/secrets/sealing.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import { bareAddress } from '../../protocols/mime/address.ts'
import { Refusal } from '../sessions/replies.ts'
import { type MailTransaction, type SessionParts, serveClient } from '../sessions/session.ts'
import { SMTP_CONNECTIONS_MAX, startSmtpListener } from '../sessions/smtp-listener.ts'
import type { FaultReply, FaultStage, Faults } from './faults.ts'

export interface CapturedMail {
  from: string
  to: string[]
  /** Lazy above 64 KB: then it is in the spool. */
  raw: Chunk
}

export interface CaptureListener {
  host: string
  port: number
  auth: { user: string; password: string }
  close(): Promise<void>
}

interface CaptureParts extends Pick<Core, 'clock' | 'log'> {
  /** Resolves once the mail is on disk; the final dot is answered after it. */
  receive(mail: CapturedMail): Promise<void>
  faults: Faults
  /** The recipient that a return path stands for. */
  recipientOf(returnPath: string): Promise<string | null>
  /** For large mail. */
  spool: Pick<BlobStore, 'spool'>
}

const HOST = '127.0.0.1'
const NAME = 'inbox.sendwright.localhost'
const USER = 'capture'
/** Not to be reached: accepted mail is captured. The size leaves room for header fields added at delivery. */
const LIMITS = {
  sizeBytesMax: 26 * 1024 * 1024,
  recipientsMax: 1_000,
  messagesMax: Number.POSITIVE_INFINITY,
  hopsMax: Number.POSITIVE_INFINITY,
  idleMs: 60_000,
  contentMs: 600_000,
}
/** The engine, the only client, has stopped before. */
const DRAIN_MS = 1_000

/** Listens on a free port of 127.0.0.1. */
export async function startCaptureListener(parts: CaptureParts): Promise<CaptureListener> {
  const password = randomBytes(24).toString('base64url')
  const session = captureSession(parts, password)
  const listener = await startSmtpListener({
    host: HOST,
    port: 0,
    implicitTlsPort: null,
    connectionsPerAddressMax: SMTP_CONNECTIONS_MAX,
    connectionsMax: SMTP_CONNECTIONS_MAX,
    serve: (channel, ...client) => serveClient(channel, session, ...client),
    clock: parts.clock,
    log: parts.log,
  })
  return {
    host: HOST,
    port: listener.port,
    auth: { user: USER, password },
    close: () => listener.close(DRAIN_MS),
  }
}

function captureSession(parts: CaptureParts, password: string): SessionParts {
  const { clock, log, recipientOf, spool } = parts
  const login = { login: USER, accountId: '', domainId: '', changedAt: 0 }
  return {
    hostname: NAME,
    limits: LIMITS,
    // The connection never leaves the machine; TLS on it would protect nothing.
    secureContext: null,
    authWithoutTls: () => true,
    authenticate: async (user, given) => (user === USER && equalSecrets(given, password) ? login : null),
    loginFailed: async () => {},
    reception: null,
    async greeting() {
      await refuseByFault(parts, 'connect', async () => [])
      return `220 ${NAME} ESMTP captured mail`
    },
    async submission({ envelopeSender, isFirst }) {
      const recipients = async () => [(await recipientOf(envelopeSender)) ?? '']
      // A connection that is used again would miss a fault at its beginning.
      if (!isFirst && (await faultAt(parts, 'connect', recipients))) {
        throw new Refusal('421 4.3.0 Connect again', { closes: true })
      }
      await refuseByFault(parts, 'mail', recipients)
      return captureTransaction(parts, envelopeSender)
    },
    blobs: spool,
    // The engine has reserved memory for what it delivers here (mail/deliver/connect/transport.ts).
    largeBodies: null,
    clock,
    log,
    faults: createFaultLog(clock),
  }
}

function captureTransaction(parts: CaptureParts, from: string): MailTransaction {
  const to: string[] = []
  return {
    async recipient(mailbox) {
      const address = bareAddress(mailbox)
      await refuseByFault(parts, 'rcpt', async () => [address])
      to.push(address)
    },
    data: () => refuseByFault(parts, 'data', async () => to),
    async finish(raw) {
      await refuseByFault(parts, 'dot', async () => to)
      try {
        await parts.receive({ from, to, raw })
      } catch (error) {
        parts.log.error({ err: error }, 'cannot store captured mail')
        throw new Refusal('451 Cannot store the message now')
      }
      return '250 Captured'
    },
  }
}

/** @throws Refusal with the reply of the fault of this stage, if there is one */
async function refuseByFault(
  parts: CaptureParts,
  stage: FaultStage,
  recipients: () => Promise<readonly string[]>,
): Promise<void> {
  const fault = await faultAt(parts, stage, recipients)
  if (!fault) return
  throw new Refusal(`${fault.code} ${fault.text}`, { closes: fault.code === 421 })
}

async function faultAt(
  { faults, log }: CaptureParts,
  stage: FaultStage,
  recipients: () => Promise<readonly string[]>,
): Promise<FaultReply | null> {
  try {
    return await faults.at(stage, recipients)
  } catch (error) {
    log.error({ err: error }, 'cannot read the faults of the inbox')
    return null
  }
}
