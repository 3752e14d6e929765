/** Further accounts in the SQLite database of a running service, made without its API. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { randomHex } from '../../src/base/ids.ts'
import { createSealer } from '../../src/platform/store/secrets/sealing.ts'
import { readSecret } from '../../src/platform/store/secrets/secret-file.ts'
import type { TestService } from './service.ts'

/** Runs statements on the service's database. */
export function changeRows(service: TestService, sql: string): void {
  const database = new DatabaseSync(join(service.config.dataFolder, 'sendwright.db'))
  try {
    database.exec(sql)
  } finally {
    database.close()
  }
}

const sealerOf = (service: TestService) =>
  createSealer(readSecret(service.config.secret, service.config.dataFolder) as string)

export interface OtherAccount {
  id: string
  /** The secret of its admin key. */
  key: string
}

/** An account with an admin key; `parentId`: it is a subaccount. */
export function addAccount(service: TestService, parentId: string | null = null): OtherAccount {
  const [id, keyId, key] = [randomHex(12), randomHex(8), randomHex(16)]
  const sealer = sealerOf(service)
  const hmac = sealer.mac('api-key', key).toString('hex')
  const signingKey = Buffer.from(sealer.seal('webhook-signing-key', `key-${randomHex(16)}`)).toString('hex')
  const parent = parentId === null ? 'NULL' : `'${parentId}'`
  changeRows(
    service,
    `INSERT INTO accounts (id, parent_id, name, signing_key_sealed, created_at)
      VALUES ('${id}', ${parent}, '${id}', x'${signingKey}', 0);
    INSERT INTO api_keys (id, account_id, kind, role, secret_hmac, secret_end, description, created_at, updated_at)
      VALUES ('${keyId}', '${id}', 'user', 'admin', '${hmac}', 'xxxx', '', 0, 0);`,
  )
  return { id, key }
}
