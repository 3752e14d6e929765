/** Verifies our own signatures on captured mail, with the published half of our keys in place of DNS. */
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import type { Store } from '../store/store.ts'
import type { Authentication } from './inbox.ts'

/**
 * Lines of a header block that the verifier is given: its time grows with the square of the lines that one field is
 * folded into (9 s for 40,000). A To with a thousand recipients has a thousand.
 */
const HEADER_LINES_MAX = 4_000

/** The result per DKIM signature; no signature: an empty list. */
export async function verifyOwnSignatures(raw: Buffer, store: Store): Promise<Authentication> {
  if (headerLines(raw) > HEADER_LINES_MAX) {
    return {
      dkim: [{ result: 'none', domain: '', selector: '', reason: 'the header is too long to verify' }],
    }
  }
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

/** Counted up to one over the limit. */
function headerLines(raw: Buffer): number {
  const end = raw.indexOf('\r\n\r\n')
  let lines = 0
  for (let at = raw.indexOf('\r\n'); at >= 0 && at < end && lines <= HEADER_LINES_MAX; lines++) {
    at = raw.indexOf('\r\n', at + 2)
  }
  return lines
}
