/** Webhooks of a domain: by type (v3), or one URL with several types (v4), both on the same rows. */
import type { Transaction } from 'kysely'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Schema } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import type { Registry } from './registry.ts'
import { tooMany, URLS_PER_TYPE_MAX, WEBHOOK_TYPES, type WebhookType } from './types.ts'
import { fullUrl, maskedUrl, openUserInfo, sealUserInfo } from './webhook-url.ts'

export interface DomainName {
  accountId: string
  name: string
}

/** Types in the contract's order; a type without URLs is left out (rule 1). */
type WebhookList = Partial<Record<WebhookType, { urls: string[] }>>

/** URLs are passed and returned with their user info. Two that differ only in its secret part are the same webhook. */
export type DomainWebhooks = ReturnType<typeof createDomainWebhooks>

export function createDomainWebhooks(store: Store, sealer: Sealer, registry: Registry) {
  const read = (db: Pick<Transaction<Schema>, 'selectFrom'>, domain: DomainName) =>
    readRows(db, sealer, domain)
  return {
    list: async (domain: DomainName): Promise<WebhookList> => listOf(await read(store.db, domain)),
    /** Empty if nothing is registered for the type. */
    async urls(domain: DomainName, type: WebhookType): Promise<string[]> {
      return (await read(store.db, domain)).filter((row) => row.event_type === type).map((row) => row.full)
    },
    /** @throws BadRequest if the type already has URLs, or for more than three */
    create: (domain: DomainName, type: WebhookType, urls: readonly string[]): Promise<string[]> =>
      registry.change(async (tx) => {
        const present = await read(tx, domain)
        if (present.some((row) => row.event_type === type)) {
          const text = 'Webhook already exists'
          throw new BadRequest(text, { form: 'Reason', extra: { message: text } })
        }
        return setType(tx, sealer, domain, type, urls)
      }),
    /** Replaces the whole list. @throws BadRequest */
    replace: (domain: DomainName, type: WebhookType, urls: readonly string[]): Promise<string[]> =>
      registry.change((tx) => setType(tx, sealer, domain, type, urls)),
    /** Resolves to the removed URLs. @throws NotFound */
    removeType: (domain: DomainName, type: WebhookType): Promise<string[]> =>
      registry.change(async (tx) => {
        const rows = (await read(tx, domain)).filter((row) => row.event_type === type)
        if (rows.length === 0) throw new NotFound('Webhook not found')
        await remove(tx, domain).where('event_type', '=', type).execute()
        return rows.map((row) => row.full)
      }),
    /** @throws BadRequest for a pair that exists, or a type that has three URLs */
    addUrl: (domain: DomainName, url: string, types: readonly WebhookType[]): Promise<WebhookList> =>
      registry.change(async (tx) => {
        const present = await read(tx, domain)
        const existing = types.find((type) => has(present, type, url))
        if (existing) {
          const text = `Webhook for event type '${existing}' with URL '${maskedUrl(url)}' already exists`
          throw new BadRequest(text, { form: 'Reason' })
        }
        await insertPairs(tx, sealer, domain, url, types, present)
        return listOf(await read(tx, domain))
      }),
    /** Replaces the types of a URL; at least one. @throws NotFound, BadRequest */
    setUrl: (domain: DomainName, url: string, types: readonly WebhookType[]): Promise<WebhookList> =>
      registry.change(async (tx) => {
        const present = await read(tx, domain)
        const masked = maskedUrl(url)
        if (!present.some((row) => row.url === masked)) {
          throw new NotFound('Webhook not found', { form: 'Description' })
        }
        await remove(tx, domain).where('url', '=', masked).where('event_type', 'not in', types).execute()
        // The password may have changed.
        await tx
          .updateTable('domain_webhooks')
          .set({ credentials_sealed: sealUserInfo(sealer, url) })
          .where('account_id', '=', domain.accountId)
          .where('domain_name', '=', domain.name)
          .where('url', '=', masked)
          .execute()
        const added = types.filter((type) => !has(present, type, url))
        await insertPairs(tx, sealer, domain, url, added, present)
        return listOf(await read(tx, domain))
      }),
    removeUrls: (domain: DomainName, urls: readonly string[]): Promise<WebhookList> =>
      registry.change(async (tx) => {
        const masked = urls.map(maskedUrl)
        if (masked.length > 0) await remove(tx, domain).where('url', 'in', masked).execute()
        return listOf(await read(tx, domain))
      }),
  }
}

/** Statements for the removal of a domain. */
export function removeDomainWebhooks(domain: DomainName): Statement[] {
  return [
    {
      sql: 'DELETE FROM domain_webhooks WHERE account_id = ? AND domain_name = ?',
      values: [domain.accountId, domain.name],
    },
    { sql: 'UPDATE webhook_changes SET version = version + 1 WHERE id = ?', values: [1] },
  ]
}

/** `url` is masked, `full` has its user info. */
type Row = { event_type: string; url: string; full: string; position: number }

async function readRows(
  db: Pick<Transaction<Schema>, 'selectFrom'>,
  sealer: Sealer,
  domain: DomainName,
): Promise<Row[]> {
  const rows = await db
    .selectFrom('domain_webhooks')
    .select(['event_type', 'url', 'position', 'credentials_sealed'])
    .where('account_id', '=', domain.accountId)
    .where('domain_name', '=', domain.name)
    .orderBy('position')
    .execute()
  return rows.map(({ credentials_sealed, ...row }) => ({
    ...row,
    full: fullUrl(row.url, openUserInfo(sealer, credentials_sealed)),
  }))
}

const has = (rows: readonly Row[], type: string, url: string) =>
  rows.some((row) => row.event_type === type && row.url === maskedUrl(url))

function listOf(rows: readonly Row[]): WebhookList {
  const list: WebhookList = {}
  for (const type of WEBHOOK_TYPES) {
    const urls = rows.filter((row) => row.event_type === type).map((row) => row.full)
    if (urls.length > 0) list[type] = { urls }
  }
  return list
}

const remove = (tx: Transaction<Schema>, domain: DomainName) =>
  tx
    .deleteFrom('domain_webhooks')
    .where('account_id', '=', domain.accountId)
    .where('domain_name', '=', domain.name)

const rowOf = (sealer: Sealer, domain: DomainName, type: WebhookType, url: string, position: number) => ({
  account_id: domain.accountId,
  domain_name: domain.name,
  event_type: type,
  url: maskedUrl(url),
  position,
  credentials_sealed: sealUserInfo(sealer, url),
})

async function setType(
  tx: Transaction<Schema>,
  sealer: Sealer,
  domain: DomainName,
  type: WebhookType,
  urls: readonly string[],
): Promise<string[]> {
  const distinct = [...new Map(urls.map((url) => [maskedUrl(url), url])).values()]
  if (distinct.length > URLS_PER_TYPE_MAX) throw tooMany()
  await remove(tx, domain).where('event_type', '=', type).execute()
  const rows = distinct.map((url, index) => rowOf(sealer, domain, type, url, index))
  await tx.insertInto('domain_webhooks').values(rows).execute()
  return distinct
}

async function insertPairs(
  tx: Transaction<Schema>,
  sealer: Sealer,
  domain: DomainName,
  url: string,
  types: readonly WebhookType[],
  present: readonly Row[],
): Promise<void> {
  if (types.length === 0) return
  const position = 1 + Math.max(-1, ...present.map((row) => row.position))
  for (const type of types) {
    if (present.filter((row) => row.event_type === type).length >= URLS_PER_TYPE_MAX) throw tooMany()
  }
  await tx
    .insertInto('domain_webhooks')
    .values(types.map((type) => rowOf(sealer, domain, type, url, position)))
    .execute()
}
