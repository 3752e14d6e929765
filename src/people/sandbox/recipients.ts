/**
 * Authorised recipients of sandbox domains (accounts.md section 2). A sandbox domain needs no DNS record, so anyone with an
 * account has one: outside of capture mode it reaches only people who have agreed, and users of the account.
 *
 * An address is added with a mail to its owner. The token of the mail's link has 256 bits and is stored as a digest.
 * Mails to strangers are limited per account and per address, in the database, so that neither a restart nor another
 * process forgets them.
 */

import { BadRequest, TooManyRequests } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import { countOf } from '../../platform/store/count.ts'
import type { SandboxRecipientRow } from '../../platform/store/schema.ts'
import { isSecret, newSecret } from '../../platform/store/secrets/random-secret.ts'
import { StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { type Actor, auditStatement } from '../accounts/audit-log.ts'
import type { SANDBOX_RECIPIENT } from '../accounts/shapes.ts'
import { emailOf } from '../accounts/user-directory.ts'
import type { SystemMail } from '../users/mails.ts'

type SandboxRecipient = Of<typeof SANDBOX_RECIPIENT>

export type SandboxRecipients = ReturnType<typeof createSandboxRecipients>

const RECIPIENTS_MAX = 5
const LINK_DAYS = 7
const MAILS_PER_ACCOUNT_MAX = 20
const MAILS_PER_ADDRESS_MAX = 3

interface SandboxRecipientParts extends Pick<Core, 'store' | 'sealer' | 'clock'> {
  sendMail: SystemMail
  publicUrl: string
}

export function createSandboxRecipients(parts: SandboxRecipientParts) {
  const { store, sealer, clock, sendMail, publicUrl } = parts
  const digestOf = (token: string) => sealer.mac('sandbox-recipient', token).toString('hex')
  const nowMs = () => Math.floor(clock.now())

  const rowsOf = (accountId: string) =>
    store.db
      .selectFrom('sandbox_recipients')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('created_at')
      .orderBy('address')
      .limit(RECIPIENTS_MAX)
      .execute()

  async function byToken(token: string): Promise<SandboxRecipientRow | null> {
    if (!isSecret(token)) return null
    const row = await store.db
      .selectFrom('sandbox_recipients')
      .selectAll()
      .where('token_digest', '=', digestOf(token))
      .where('token_expires_at', '>', nowMs())
      .executeTakeFirst()
    return row ?? null
  }

  return {
    /** Oldest first. */
    list: async (accountId: string): Promise<SandboxRecipient[]> => (await rowsOf(accountId)).map(viewOf),
    /** Sends the mail, again for an address that was added before. @throws BadRequest, TooManyRequests */
    async add(accountId: string, given: string): Promise<SandboxRecipient> {
      const address = addressOf(given)
      const rows = await rowsOf(accountId)
      const known = rows.find((row) => row.address === address)
      if (known?.is_activated === 1) return viewOf(known)
      if (!known && rows.length >= RECIPIENTS_MAX) throw tooMany()
      const token = newSecret(store)
      const now = nowMs()
      const [counting, recipient] = [
        mailStatements(accountId, address, now),
        recipientStatement(accountId, address, digestOf(token), now),
      ]
      try {
        await sendMail(mailOf(address, `${publicUrl}/sandbox-recipients/${token}`), [
          lockStatement(accountId),
          ...counting,
          recipient,
        ])
      } catch (error) {
        if (!(error instanceof StaleWrite)) throw error
        if (error.statement === recipient) throw tooMany()
        throw new TooManyRequests(DAY_MS / 1000)
      }
      return { email: address, activated: false }
    },
    /** @throws BadRequest for an unknown address */
    async remove(accountId: string, given: string): Promise<void> {
      const removed = await store.db
        .deleteFrom('sandbox_recipients')
        .where('account_id', '=', accountId)
        .where('address', '=', addressOf(given))
        .executeTakeFirst()
      if (Number(removed.numDeletedRows) === 0) throw invalid()
    },
    /** The address that a link is for; null: used, replaced or too old. */
    find: async (token: string): Promise<string | null> => (await byToken(token))?.address ?? null,
    /** Activates the address; null as `find`. */
    async confirm(token: string, visitor: Omit<Actor, 'caller'>): Promise<string | null> {
      const row = await byToken(token)
      if (!row) return null
      const { account_id: accountId, address } = row
      const change = { action: 'sandbox-recipient.confirm', subject: address, detail: {} }
      const agreed: Statement = {
        sql: `UPDATE sandbox_recipients SET is_activated = 1, token_digest = NULL
          WHERE account_id = ? AND address = ? AND token_digest = ?`,
        values: [accountId, address, row.token_digest],
        expectRows: 1,
      }
      const audit = auditStatement({ ...visitor, caller: { accountId, keyId: '' } }, change, clock.now())
      return (await commitUnlessStale(store, [agreed, audit])) ? address : null
    },
  }
}

const viewOf = ({ address, is_activated }: SandboxRecipientRow): SandboxRecipient => ({
  email: address,
  activated: is_activated === 1,
})

/** @throws BadRequest */
function addressOf(given: string): string {
  const address = emailOf(given)
  if (address === null) throw invalid()
  return address
}

const invalid = () => new BadRequest('Invalid email address.')
const tooMany = () => new BadRequest(`Only ${RECIPIENTS_MAX} sandbox recipients are allowed`)

/** The counts below see what parallel requests of the account have committed. */
const lockStatement = (accountId: string): Statement => ({
  sql: 'UPDATE accounts SET id = id WHERE id = ?',
  values: [accountId],
  expectRows: 1,
})

/** Counts a mail. The second fails its unit over a limit. */
function mailStatements(accountId: string, address: string, now: number): Statement[] {
  const since = now - DAY_MS
  return [
    {
      sql: 'DELETE FROM sandbox_mails WHERE (account_id = ? OR address = ?) AND sent_at <= ?',
      values: [accountId, address, since],
    },
    {
      sql: `INSERT INTO sandbox_mails (account_id, address, sent_at)
        SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT)
        WHERE (SELECT COUNT(*) FROM sandbox_mails WHERE account_id = ? AND sent_at > ?) < ${MAILS_PER_ACCOUNT_MAX}
          AND (SELECT COUNT(*) FROM sandbox_mails WHERE address = ? AND sent_at > ?) < ${MAILS_PER_ADDRESS_MAX}`,
      values: [accountId, address, now, accountId, since, address, since],
      expectRows: 1,
    },
  ]
}

/** Adds the address, or replaces its token. Fails its unit over the limit of addresses. */
function recipientStatement(accountId: string, address: string, digest: string, now: number): Statement {
  return {
    sql: `INSERT INTO sandbox_recipients (account_id, address, is_activated, token_digest, token_expires_at, created_at)
      SELECT CAST(? AS TEXT), CAST(? AS TEXT), 0, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT)
      WHERE (SELECT COUNT(*) FROM sandbox_recipients WHERE account_id = ? AND address <> ?) < ${RECIPIENTS_MAX}
      ON CONFLICT (account_id, address) DO UPDATE SET
        token_digest = excluded.token_digest, token_expires_at = excluded.token_expires_at`,
    values: [accountId, address, digest, now + LINK_DAYS * DAY_MS, now, accountId, address],
    expectRows: 1,
  }
}

/** No text of the account's: it must not become a way to write to strangers. */
const mailOf = (to: string, url: string) => ({
  to,
  subject: 'Confirm that you want to receive test messages',
  text: `Somebody who tries out an email sending service wants to send test messages to this address.

If you agree, open this link within ${LINK_DAYS} days and press the button:

${url}

If you do not know what this is about, ignore this message: nothing will be sent to you.
`,
})

/** Addresses in one query. */
const ADDRESSES_PER_QUERY = 500

/**
 * Whether sandbox domains of the account may send to all of these: recipients who have agreed, and active users.
 * `addresses`: as `addressKey` gives them.
 */
export async function haveAgreed(
  store: Pick<Store, 'db'>,
  accountId: string,
  addresses: readonly string[],
): Promise<boolean> {
  const confirmed = await store.db
    .selectFrom('sandbox_recipients')
    .select('address')
    .where('account_id', '=', accountId)
    .where('is_activated', '=', 1)
    .limit(RECIPIENTS_MAX)
    .execute()
  const agreed = new Set(confirmed.map(({ address }) => address))
  const others = [...new Set(addresses)].filter((address) => !agreed.has(address))
  for (let at = 0; at < others.length; at += ADDRESSES_PER_QUERY) {
    const asked = others.slice(at, at + ADDRESSES_PER_QUERY)
    const count = await countOf(
      store.db
        .selectFrom('users')
        .where('email', 'in', asked)
        .where('account_id', '=', accountId)
        .where('is_disabled', '=', 0)
        // Who was invited has not agreed to anything yet.
        .where('password_hash', 'is not', null),
    )
    if (count < asked.length) return false
  }
  return true
}
