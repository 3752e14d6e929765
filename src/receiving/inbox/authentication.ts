/** Verifies our own signatures on captured mail, with our own public keys instead of DNS. */
import { Readable } from 'node:stream'
import type { Of } from '../../base/shape.ts'
import type { Store } from '../../platform/store/store.ts'
import { type Chunk, readChunks } from '../../protocols/message/mime-message.ts'
import {
  DELIVERED_HEADER_LIMITS,
  type RawHeader,
  readHead,
  splitMessage,
  unfoldedValue,
} from '../../protocols/mime/split.ts'
import { unverifiableReason } from '../../protocols/mime/verifiable.ts'
import type { AUTHENTICATION } from './shapes.ts'

/** How our own DKIM signatures on a captured message verify. */
export type Authentication = Of<typeof AUTHENTICATION>

/** Published records by the name at which a verifier asks for them. */
export type PublicKeys = Readonly<Record<string, string>>

/** We make up to four. */
const SIGNATURES_MAX = 20

/** The records of our keys that the message's signatures name. */
export async function keysNamedBy(headers: readonly RawHeader[], store: Store): Promise<PublicKeys> {
  const named = headers
    .filter(({ name }) => name.toLowerCase() === 'dkim-signature')
    .slice(0, SIGNATURES_MAX)
    .map(({ raw }) => unfoldedValue(raw).replaceAll(/\s/g, ''))
  const tags = (name: string) => [...new Set(named.flatMap((value) => tagOf(value, name)))]
  const [selectors, domains] = [tags('s'), tags('d')]
  if (selectors.length === 0 || domains.length === 0) return {}
  const rows = await store.db
    .selectFrom('dkim_keys')
    .select(['selector', 'authority', 'public_record'])
    .where('selector', 'in', selectors)
    .where('authority', 'in', domains)
    .execute()
  return Object.fromEntries(
    rows.map(({ selector, authority, public_record }) => [
      `${selector}._domainkey.${authority}`,
      public_record,
    ]),
  )
}

/** RFC 6376 §3.2. */
function tagOf(signature: string, name: string): string[] {
  const tag = signature.split(';').find((part) => part.startsWith(`${name}=`))
  return tag === undefined ? [] : [tag.slice(name.length + 1).toLowerCase()]
}

/** The result per DKIM signature; no signature: an empty list. */
export async function verifyOwnSignatures(raw: Chunk, keys: PublicKeys): Promise<Authentication> {
  const reason = await unverifiableReason(
    raw,
    splitMessage(await readHead(raw), DELIVERED_HEADER_LIMITS).headers,
  )
  if (reason !== null) return unverified(reason)
  // Loaded when it is first needed: with its libraries it takes 10 MB.
  const { dkimVerify } = await import('mailauth/lib/dkim/verify.js')
  const { results } = await dkimVerify(Readable.from(readChunks([raw]), { objectMode: false }), {
    async resolver(name: string) {
      const record = Object.hasOwn(keys, name) ? keys[name] : undefined
      if (record === undefined) throw Object.assign(new Error(`no key at ${name}`), { code: 'ENOTFOUND' })
      return [[record]]
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

/** No result, and why. */
export const unverified = (reason: string): Authentication => ({
  dkim: [{ result: 'none', domain: '', selector: '', reason }],
})
