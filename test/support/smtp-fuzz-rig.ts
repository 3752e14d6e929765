/** An SMTP listener for random clients that records what it accepts, and every internal error. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import pino from 'pino'
import { openBlobs } from '../../src/platform/store/blobs/blobs.ts'
import { Refusal } from '../../src/receiving/sessions/replies.ts'
import { type MailTransaction, SMTP_LIMITS } from '../../src/receiving/sessions/session.ts'
import { startTestListener } from './test-listener.ts'

export interface FuzzRig {
  host: string
  port: number
  /** Accepted messages. */
  taken: number
  /** Content accepted without a recipient, or from a client that was not logged in. */
  wrong: number
  /** Log lines about internal errors, and unhandled rejections. */
  faults: string[]
  /** Spooled files that still exist. */
  spooled(): Promise<string[]>
  close(): Promise<void>
}

export async function startFuzzRig(folder: string): Promise<FuzzRig> {
  const blobs = await openBlobs(folder)
  const faults: string[] = []
  const stream = {
    write(line: string) {
      faults.push(line)
    },
  }
  const onRejection = (error: unknown) => void faults.push(`unhandled: ${error}`)
  process.on('unhandledRejection', onRejection)
  const log = pino({ level: 'error' }, stream)
  const rig = { taken: 0, wrong: 0 }
  const transaction = (mayTake: boolean): MailTransaction => ({
    async recipient({ domain }) {
      if (domain.startsWith('x')) throw new Refusal('550 5.1.1 Recipient not found')
    },
    async finish(_raw, recipients) {
      rig.taken++
      if (recipients.length === 0 || !mayTake) rig.wrong++
      return '250 2.0.0 Queued'
    },
  })
  const listener = await startTestListener(
    folder,
    {
      limits: { ...SMTP_LIMITS, sizeBytesMax: 100_000, recipientsMax: 5, messagesMax: 20, idleMs: 5_000 },
      authenticate: async (login, password) =>
        login === 'u' && password === 'p' ? { login, accountId: 'a', domainId: 'd', changedAt: 1 } : null,
      submission: async ({ login }) => transaction(login.login === 'u'),
      blobs,
      log,
    },
    { implicitTlsPort: null },
  )
  return {
    host: listener.host,
    port: listener.port,
    faults,
    get taken() {
      return rig.taken
    },
    get wrong() {
      return rig.wrong
    },
    spooled: () => readdir(join(folder, 'spool')),
    async close() {
      await listener.close(5_000)
      process.off('unhandledRejection', onRejection)
    },
  }
}
