/** Webhooks of an account (v1): each has an id, a URL and several types. */
import type { Transaction } from 'kysely'
import { randomHex } from '../../base/ids.ts'
import { BadRequest, Conflict, NotFound, present } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { AccountWebhookRow, Schema } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Registry } from './registry.ts'
import { tooMany, URLS_PER_TYPE_MAX, type WebhookType } from './types.ts'
import { fullUrl, maskedUrl, openUserInfo, sealUserInfo } from './webhook-url.ts'

interface AccountWebhook {
  id: string
  url: string
  description: string
  types: readonly WebhookType[]
}

/** As shown to callers: `url` includes its user info. */
export type ShownWebhook = AccountWebhook & { createdAt: number }

/** URLs are passed and returned with their user info. Two that differ only in its secret part are the same webhook. */
export type AccountWebhooks = ReturnType<typeof createAccountWebhooks>

export function createAccountWebhooks(store: Store, sealer: Sealer, registry: Registry, clock: Clock) {
  const shown = (row: AccountWebhookRow): ShownWebhook => ({
    id: row.id,
    url: fullUrl(row.url, openUserInfo(sealer, row.credentials_sealed)),
    description: row.description,
    types: typesOf(row),
    createdAt: row.created_at,
  })
  const columns = (webhook: Omit<AccountWebhook, 'id'>) => ({
    url: maskedUrl(webhook.url),
    description: webhook.description,
    event_types_json: JSON.stringify(webhook.types),
    credentials_sealed: sealUserInfo(sealer, webhook.url),
  })

  const all = (db: Pick<Transaction<Schema>, 'selectFrom'>, accountId: string) =>
    db
      .selectFrom('account_webhooks')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('created_at')
      .orderBy('id')
      .execute()

  const one = async (db: Pick<Transaction<Schema>, 'selectFrom'>, accountId: string, id: string) => {
    checkId(id)
    return present(
      (await all(db, accountId)).find((candidate) => candidate.id === id),
      `webhook_id not found: ${id}`,
      { form: 'Description' },
    )
  }

  return {
    /** Oldest first; `ids`: only these. */
    async list(accountId: string, ids?: readonly string[]): Promise<ShownWebhook[]> {
      const rows = await all(store.db, accountId)
      return (ids === undefined ? rows : rows.filter((row) => ids.includes(row.id))).map(shown)
    },
    /** @throws BadRequest for a malformed id, NotFound for an unknown one */
    read: async (accountId: string, id: string): Promise<ShownWebhook> =>
      shown(await one(store.db, accountId, id)),
    /** Resolves to the new id. @throws Conflict if the URL already has one of the types, BadRequest over three URLs */
    create: (accountId: string, webhook: Omit<AccountWebhook, 'id'>): Promise<string> =>
      registry.change(async (tx) => {
        checkLimits(await all(tx, accountId), webhook)
        const id = randomHex(12)
        const row = { id, account_id: accountId, ...columns(webhook), created_at: Math.floor(clock.now()) }
        await tx.insertInto('account_webhooks').values(row).execute()
        return id
      }),
    replace: (accountId: string, webhook: AccountWebhook): Promise<void> =>
      registry.change(async (tx) => {
        await one(tx, accountId, webhook.id)
        checkLimits(
          (await all(tx, accountId)).filter((row) => row.id !== webhook.id),
          webhook,
        )
        await tx.updateTable('account_webhooks').set(columns(webhook)).where('id', '=', webhook.id).execute()
      }),
    remove: (accountId: string, id: string): Promise<void> =>
      registry.change(async (tx) => {
        await one(tx, accountId, id)
        await tx.deleteFrom('account_webhooks').where('id', '=', id).execute()
      }),
    /** `ids` undefined: all. @throws NotFound if there is nothing to remove */
    removeSome: (accountId: string, ids: readonly string[] | undefined): Promise<void> =>
      registry.change(async (tx) => {
        const rows = await all(tx, accountId)
        const removed = rows.map((row) => row.id).filter((id) => ids === undefined || ids.includes(id))
        if (removed.length === 0) {
          throw new NotFound('no webhooks found for account', { form: 'Description' })
        }
        await tx
          .deleteFrom('account_webhooks')
          .where('account_id', '=', accountId)
          .where('id', 'in', removed)
          .execute()
      }),
  }
}

function checkId(id: string): void {
  if (/^[0-9a-f]{24}$/.test(id)) return
  throw new BadRequest('is not valid', { form: 'Field', field: 'webhook_id' })
}

const typesOf = (row: AccountWebhookRow) => JSON.parse(row.event_types_json) as WebhookType[]

function checkLimits(others: readonly AccountWebhookRow[], webhook: Omit<AccountWebhook, 'id'>): void {
  for (const type of webhook.types) {
    const urls = new Set(others.filter((row) => typesOf(row).includes(type)).map((row) => row.url))
    if (urls.has(maskedUrl(webhook.url)))
      throw new Conflict('webhook already exists', { form: 'Description' })
    if (urls.size >= URLS_PER_TYPE_MAX) throw tooMany()
  }
}
