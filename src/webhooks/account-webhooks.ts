/** Webhooks of a whole account (v1): a URL with its types under an id. */
import type { Transaction } from 'kysely'
import type { Clock } from '../base/clock.ts'
import { BadRequest, Conflict, NotFound } from '../base/errors.ts'
import { randomHex } from '../base/ids.ts'
import type { AccountWebhookRow, Schema } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { tooMany, URLS_PER_TYPE_MAX } from './domain-webhooks.ts'
import type { Registry } from './registry.ts'
import type { WebhookType } from './types.ts'

export interface AccountWebhook {
  id: string
  url: string
  description: string
  types: readonly WebhookType[]
}

export interface AccountWebhooks {
  /** Oldest first; `ids`: only these. */
  list(accountId: string, ids?: readonly string[]): Promise<AccountWebhookRow[]>
  /** @throws BadRequest, NotFound for an id of the wrong form, or of none */
  read(accountId: string, id: string): Promise<AccountWebhookRow>
  /** The new id. @throws Conflict when the URL has one of the types already, BadRequest over three URLs */
  create(accountId: string, webhook: Omit<AccountWebhook, 'id'>): Promise<string>
  replace(accountId: string, webhook: AccountWebhook): Promise<void>
  remove(accountId: string, id: string): Promise<void>
  /** `ids` undefined: all. @throws NotFound when there is nothing to remove */
  removeSome(accountId: string, ids: readonly string[] | undefined): Promise<void>
}

export function createAccountWebhooks(store: Store, registry: Registry, clock: Clock): AccountWebhooks {
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
    const row = (await all(db, accountId)).find((candidate) => candidate.id === id)
    if (!row) throw new NotFound(`webhook_id not found: ${id}`, { form: 'Description' })
    return row
  }

  return {
    async list(accountId, ids) {
      const rows = await all(store.db, accountId)
      return ids === undefined ? rows : rows.filter((row) => ids.includes(row.id))
    },
    read: (accountId, id) => one(store.db, accountId, id),
    create: (accountId, webhook) =>
      registry.change(async (tx) => {
        checkRoom(await all(tx, accountId), webhook)
        const id = randomHex(12)
        const row = { id, account_id: accountId, ...columns(webhook), created_at: Math.floor(clock.now()) }
        await tx.insertInto('account_webhooks').values(row).execute()
        return id
      }),
    replace: (accountId, webhook) =>
      registry.change(async (tx) => {
        await one(tx, accountId, webhook.id)
        checkRoom(
          (await all(tx, accountId)).filter((row) => row.id !== webhook.id),
          webhook,
        )
        await tx.updateTable('account_webhooks').set(columns(webhook)).where('id', '=', webhook.id).execute()
      }),
    remove: (accountId, id) =>
      registry.change(async (tx) => {
        await one(tx, accountId, id)
        await tx.deleteFrom('account_webhooks').where('id', '=', id).execute()
      }),
    removeSome: (accountId, ids) =>
      registry.change(async (tx) => {
        const rows = await all(tx, accountId)
        const gone = rows.map((row) => row.id).filter((id) => ids === undefined || ids.includes(id))
        if (gone.length === 0) {
          throw new NotFound('no webhooks found for account', { form: 'Description' })
        }
        await tx
          .deleteFrom('account_webhooks')
          .where('account_id', '=', accountId)
          .where('id', 'in', gone)
          .execute()
      }),
  }
}

function checkId(id: string): void {
  if (/^[0-9a-f]{24}$/.test(id)) return
  throw new BadRequest('is not valid', { form: 'Field', field: 'webhook_id' })
}

const columns = (webhook: Omit<AccountWebhook, 'id'>) => ({
  url: webhook.url,
  description: webhook.description,
  event_types_json: JSON.stringify(webhook.types),
})

export const typesOf = (row: AccountWebhookRow) => JSON.parse(row.event_types_json) as WebhookType[]

function checkRoom(others: readonly AccountWebhookRow[], webhook: Omit<AccountWebhook, 'id'>): void {
  for (const type of webhook.types) {
    const urls = new Set(others.filter((row) => typesOf(row).includes(type)).map((row) => row.url))
    if (urls.has(webhook.url)) throw new Conflict('webhook already exists', { form: 'Description' })
    if (urls.size >= URLS_PER_TYPE_MAX) throw tooMany()
  }
}
