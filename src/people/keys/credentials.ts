/** SMTP credentials of a domain (accounts.md section 6): logins, their passwords, and authentication. */
import { randomBytes } from 'node:crypto'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { countOf } from '../../platform/store/count.ts'
import { type Entry, enter, entriesOf, leave } from '../../platform/store/pods/entries.ts'
import type { CredentialRow, Flag } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import type { SmtpLogin } from '../../receiving/sessions/session.ts'
import type { SystemLoginWrite } from '../../sending/domains/create-domain.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { DECOY_HASH, hashPassword, verifyPassword } from '../sign-in/passwords.ts'

interface NewCredential {
  /** Local part or full address. */
  login: string
  /** Absent: one is generated. */
  password?: string | undefined
}

export type Credentials = ReturnType<typeof createCredentials>

const PASSWORD_MIN = 5
const PASSWORD_MAX = 32
/** 24 characters: 144 bits. */
const GENERATED_PASSWORD_BYTES = 18
/** How long a verified password is accepted without argon2id again, which takes about 20 ms of one core. */
const VERIFIED_MS = 5 * 60_000
const VERIFIED_MAX = 10_000

const loginEntries = (rows: readonly { login: string }[]): Entry[] =>
  entriesOf(
    'login',
    rows.map(({ login }) => login),
  )

/** Removes the logins of a domain that are system logins or not, as `kinds` says. Resolves to their number. */
function removeLogins(store: Store, domainId: string, kinds: readonly Flag[]): Promise<number> {
  return store.transaction(async (tx) => {
    const removed = await tx
      .deleteFrom('credentials')
      .where('domain_id', '=', domainId)
      .where('is_system', 'in', kinds)
      .returning('login')
      .execute()
    await leave(store, tx, loginEntries(removed))
    return removed.length
  })
}

export function createCredentials(store: Store, sealer: Sealer, clock: Clock) {
  const matches = createVerification(sealer, clock)

  const find = (login: string) =>
    store.db.selectFrom('credentials').selectAll().where('login', '=', login).executeTakeFirst()

  async function own(domain: Domain, spec: string): Promise<CredentialRow> {
    const row = await find(loginOf(domain, spec))
    if (!row || row.domain_id !== domain.id) throw new NotFound('Credentials not found')
    return row
  }

  return {
    async list(
      domain: Domain,
      { skip, limit }: { skip: number; limit: number },
    ): Promise<{ rows: CredentialRow[]; total: number }> {
      const query = store.db.selectFrom('credentials').where('domain_id', '=', domain.id)
      const count = await countOf(query)
      const rows = await query.selectAll().orderBy('login').limit(limit).offset(skip).execute()
      return { rows, total: count }
    },
    /** Creates the logins or sets their passwords, all or none. Resolves to the generated passwords. */
    async set(domain: Domain, given: readonly NewCredential[]): Promise<Map<string, string>> {
      const generated = new Map<string, string>()
      const rows: CredentialRow[] = []
      const now = Math.floor(clock.now())
      for (const credential of given) {
        const login = loginOf(domain, credential.login)
        const password = credential.password ?? generatePassword()
        if (credential.password === undefined) generated.set(login, password)
        else checkPassword(password)
        const password_hash = await hashPassword(password)
        const row = {
          login,
          account_id: domain.accountId,
          domain_id: domain.id,
          password_hash,
          changed_at: now,
        }
        rows.push({ ...row, is_system: login === systemLogin(domain) ? 1 : 0, created_at: now })
      }
      await store.transaction(async (tx) => {
        await enter(store, tx, loginEntries(rows))
        for (const row of rows) {
          const { password_hash, changed_at } = row
          await tx
            .insertInto('credentials')
            .values(row)
            .onConflict((conflict) => conflict.column('login').doUpdateSet({ password_hash, changed_at }))
            .execute()
        }
      })
      return generated
    },
    /** @throws NotFound */
    async changePassword(domain: Domain, spec: string, password: string | undefined): Promise<string | null> {
      const row = await own(domain, spec)
      if (password !== undefined) checkPassword(password)
      const next = password ?? generatePassword()
      await store.db
        .updateTable('credentials')
        .set({ password_hash: await hashPassword(next), changed_at: Math.floor(clock.now()) })
        .where('login', '=', row.login)
        .execute()
      return password === undefined ? next : null
    },
    async remove(domain: Domain, spec: string): Promise<string> {
      const row = await own(domain, spec)
      if (row.is_system) throw new BadRequest(`Cannot delete system mailbox: ${row.login}`)
      await store.transaction(async (tx) => {
        await tx.deleteFrom('credentials').where('login', '=', row.login).execute()
        await leave(store, tx, loginEntries([row]))
      })
      return row.login
    },
    removeAll: ({ id }: Domain): Promise<number> => removeLogins(store, id, [0]),
    /**
     * The system login `postmaster@<name>` of a domain; null: it cannot be used yet. Resolves, once the password is hashed, to
     * what writes it.
     */
    systemWrite: (async (domain, password) => {
      const now = Math.floor(clock.now())
      const password_hash = password === null ? null : await hashPassword(password)
      const row = {
        login: systemLogin(domain),
        account_id: domain.accountId,
        domain_id: domain.id,
        changed_at: now,
      }
      return async (tx) => {
        await enter(store, tx, loginEntries([row]))
        await tx
          .insertInto('credentials')
          .values({ ...row, password_hash, is_system: 1, created_at: now })
          .onConflict((conflict) =>
            password_hash === null
              ? conflict.column('login').doNothing()
              : conflict.column('login').doUpdateSet({ password_hash, changed_at: now }),
          )
          .execute()
      }
    }) satisfies SystemLoginWrite,
    /** Removes all logins of a deleted domain. */
    async forgetDomain({ id }: Pick<Domain, 'id'>): Promise<void> {
      await removeLogins(store, id, [0, 1])
    },
    /** Null for an unknown login, a wrong password or a login without one; equally slow in every case. */
    async authenticate(login: string, password: string): Promise<SmtpLogin | null> {
      const row = await find(login.toLowerCase())
      if (!(await matches(row, password)) || !row) return null
      return {
        login: row.login,
        accountId: row.account_id,
        domainId: row.domain_id,
        changedAt: row.changed_at,
      }
    },
    /** The login of that name with its account, or null. */
    async known(login: string): Promise<{ accountId: string; login: string } | null> {
      const row = await find(login.toLowerCase())
      return row === undefined ? null : { accountId: row.account_id, login: row.login }
    },
    /** Whether a session's login still exists with the same password. */
    async stillValid(login: SmtpLogin): Promise<boolean> {
      const row = await find(login.login)
      return row !== undefined && row.changed_at === login.changedAt
    },
  }
}

/** Verifies passwords; those that matched lately are known by their digest. */
function createVerification(sealer: Sealer, clock: Clock) {
  /** Keyed digests of login, hash and password that matched, with their expiry. */
  const verified = new Map<string, number>()

  return async (row: CredentialRow | undefined, password: string): Promise<boolean> => {
    const hash = row?.password_hash ?? null
    if (!row || hash === null) {
      // So that the response takes equally long.
      await verifyPassword(password, DECOY_HASH)
      return false
    }
    const digest = sealer.mac('smtp-login', `${row.login}\0${hash}\0${password}`).toString('base64')
    if ((verified.get(digest) ?? 0) > clock.monotonic()) return true
    if (!(await verifyPassword(password, hash))) return false
    verified.set(digest, clock.monotonic() + VERIFIED_MS)
    const [oldest] = verified.keys()
    if (verified.size > VERIFIED_MAX && oldest !== undefined) verified.delete(oldest)
    return true
  }
}

const systemLogin = (domain: Pick<Domain, 'name'>) => `postmaster@${domain.name}`

/** The full address of a login given as local part or address, in lower case. @throws BadRequest */
function loginOf(domain: Domain, given: string): string {
  const text = given.trim().toLowerCase()
  const address = text.includes('@') ? text : `${text}@${domain.name}`
  try {
    const mailbox = parseMailbox(address)
    if (mailbox.domain === domain.name && /^[\x21-\x7e]+$/.test(mailbox.local))
      return `${mailbox.local}@${domain.name}`
  } catch {
    // One error for everything that is not a login of this domain.
  }
  throw new BadRequest(`Invalid format for parameter login: ${given.slice(0, 256)}`)
}

function checkPassword(password: string): void {
  if (password.length < PASSWORD_MIN || password.length > PASSWORD_MAX) {
    throw new BadRequest(`password should be in range ${PASSWORD_MIN}-${PASSWORD_MAX} characters`)
  }
}

const generatePassword = () => randomBytes(GENERATED_PASSWORD_BYTES).toString('base64url')
