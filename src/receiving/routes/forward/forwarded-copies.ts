/**
 * The memory of what routes have forwarded by mail: an account forwards one mail to one address once within a day, however
 * often the mail comes back. Otherwise routes that forward to each other's addresses would make a copy for each order in
 * which the mail can pass them.
 *
 * 1. A mail is known by fields that no forward changes (`mailKey`), so its sender cannot vary them between two hops.
 * 2. `claim` returns the destinations that have no copy yet, and statements that record them. They join the transaction
 *    that stores the mail, and fail it if another one has recorded the same copy meanwhile.
 */

import { createHash } from 'node:crypto'
import type { Clock } from '../../../base/time/clock.ts'
import type { ReadMail } from '../../../mail/accept/received-mail.ts'
import { readMessageId } from '../../../mail/record/variables.ts'
import { createJob } from '../../../platform/jobs/job.ts'
import { removeRows } from '../../../platform/store/commits.ts'
import { insertMany, type Statement, type Store } from '../../../platform/store/store.ts'
import { type Chunk, chunkSize, scanChunks, sliceChunk } from '../../../protocols/message/mime-message.ts'
import { addressKey, type Mailbox } from '../../../protocols/mime/address.ts'

/** Copies of one mail that an account forwards within the window; a mail to so many aliases is rare, more is a loop. */
export const COPIES_MAX = 1_000
/** Long enough for a loop through servers that delay mail, and short enough for senders that use an id again. */
const WINDOW_MS = 24 * 3_600_000
const EVERY_MS = 600_000

const FIND = 'SELECT address FROM forwarded_copies WHERE mail = ? AND expires_at > ?'
const COLUMNS = 3
const REPLACE_EXPIRED = `ON CONFLICT (mail, address) DO UPDATE SET expires_at = excluded.expires_at
  WHERE forwarded_copies.expires_at <= ?`

interface Claim<Forward> {
  /** The first forward to each address that has no copy yet, and the others to the same addresses. */
  fresh: readonly Forward[]
  /** Beyond COPIES_MAX. */
  tooMany: readonly Forward[]
  /** Records the fresh ones; each fails its unit if one of them has been recorded meanwhile. */
  statements: readonly Statement[]
}

export type ForwardedCopies = ReturnType<typeof createForwardedCopies>

export function createForwardedCopies(store: Store, clock: Clock) {
  return {
    async claim<Forward extends { mailbox: Mailbox }>(
      mail: string,
      forwards: readonly Forward[],
    ): Promise<Claim<Forward>> {
      const now = Math.floor(clock.now())
      const rows = forwards.length > 0 ? await store.read({ sql: FIND, values: [mail, now] }) : []
      const copied = new Set(rows.map(({ address }) => address as string))
      const claimed = new Set<string>()
      const [fresh, tooMany]: [(typeof forwards)[number][], (typeof forwards)[number][]] = [[], []]
      for (const forward of forwards) {
        const address = digest([addressKey(forward.mailbox)])
        if (copied.has(address)) continue
        const isRoom = claimed.has(address) || copied.size + claimed.size < COPIES_MAX
        if (isRoom) claimed.add(address)
        ;(isRoom ? fresh : tooMany).push(forward)
      }
      // In order, so that two transactions with the same copies cannot wait for each other.
      return { fresh, tooMany, statements: recording(mail, [...claimed].sort(), now) }
    },
    job: createJob({
      name: 'forwarded-copies-retention',
      everyMs: EVERY_MS,
      scope: 'database',
      work(signal) {
        const over = { where: 'expires_at <= ? ORDER BY expires_at', values: [Math.floor(clock.now())] }
        return removeRows(store, { from: 'forwarded_copies', key: 'mail, address', ...over }, signal)
      },
    }),
  }
}

function recording(mail: string, addresses: readonly string[], now: number): Statement[] {
  const rows = addresses.map((address) => ({ mail, address, expires_at: now + WINDOW_MS }))
  return insertMany('forwarded_copies', rows).map(({ sql, values }) => ({
    sql: `${sql} ${REPLACE_EXPIRED}`,
    values: [...values, now],
    expectRows: values.length / COLUMNS,
  }))
}

/** What a mail keeps on its way: its Message-Id, or without one its body, and who wrote it when and about what. */
export async function mailKey(accountId: string, { headers, chunk, bodyStart }: ReadMail): Promise<string> {
  const field = (name: string) => headers.find((header) => header.name.toLowerCase() === name)?.value ?? ''
  const id =
    readMessageId(field('message-id')) ?? (await bodyDigest(sliceChunk(chunk, bodyStart, chunkSize(chunk))))
  return digest([accountId, id, field('from'), field('date'), field('subject')])
}

async function bodyDigest(body: Chunk): Promise<string> {
  const hash = createHash('sha256')
  for await (const bytes of scanChunks([body])) hash.update(bytes)
  return hash.digest('base64url')
}

const digest = (facts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(facts)).digest('base64url').slice(0, 22)
