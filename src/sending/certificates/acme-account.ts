/** The service's account with a certificate authority: one for all nodes, its key sealed in the database. */
import { generateKeyPairSync } from 'node:crypto'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'
import type { AcmeAccounts } from '../../protocols/acme/order.ts'

const SEALED_AS = 'acme-account'

export function createAcmeAccounts(store: Store, sealer: Sealer, email: string | null): AcmeAccounts {
  const wanted = email === null ? '' : `mailto:${email}`
  const find = (directory: string) =>
    store.db.selectFrom('acme_accounts').selectAll().where('directory', '=', directory).executeTakeFirst()

  async function create(directory: string): Promise<void> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    await store.db
      .insertInto('acme_accounts')
      .values({ directory, key_sealed: sealer.seal(SEALED_AS, key), url: null, contact: '' })
      // Another node was first: its key is used.
      .onConflict((conflict) => conflict.column('directory').doNothing())
      .execute()
  }
  const setUrl = async (directory: string, change: { url: string | null; contact?: string }) =>
    void (await store.db
      .updateTable('acme_accounts')
      .set(change)
      .where('directory', '=', directory)
      .execute())

  return {
    async get(directory) {
      const row = (await find(directory)) ?? (await create(directory).then(() => find(directory)))
      if (!row) throw new Error(`No account row for ${directory} right after it was made`)
      return {
        key: sealer.open(SEALED_AS, row.key_sealed).toString('utf8'),
        url: row.url,
        contact: wanted === '' ? [] : [wanted],
        contactChanged: row.contact !== wanted,
      }
    },
    registered: (directory, url) => setUrl(directory, { url, contact: wanted }),
    forgotten: (directory) => setUrl(directory, { url: null }),
  }
}
