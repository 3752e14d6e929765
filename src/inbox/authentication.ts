/** Verifies our own signatures on captured mail, with the published half of our keys in place of DNS. */
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import type { Store } from '../store/store.ts'
import type { Authentication } from './inbox.ts'

/** The result per DKIM signature; no signature: an empty list. */
export async function verifyOwnSignatures(raw: Buffer, store: Store): Promise<Authentication> {
  const { results } = await dkimVerify(raw, {
    async resolver(name: string) {
      const match = /^(.+?)\._domainkey\.(.+)$/.exec(name)
      const row = await store.db
        .selectFrom('dkim_keys')
        .select('public_record')
        .where('selector', '=', match?.[1] ?? '')
        .where('authority', '=', match?.[2] ?? '')
        .executeTakeFirst()
      if (!row) throw Object.assign(new Error(`no key at ${name}`), { code: 'ENOTFOUND' })
      return [[row.public_record]]
    },
  })
  return {
    dkim: results
      .filter((result) => result.signingDomain)
      .map((result) => ({
        result: result.status?.result ?? 'none',
        domain: result.signingDomain ?? '',
        selector: result.selector ?? '',
        ...(result.status?.comment && { reason: result.status.comment }),
      })),
  }
}
