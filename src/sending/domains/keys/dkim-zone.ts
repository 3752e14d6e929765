/** The contents of the service's DKIM zone: the keys of automatic sender security, and nothing else. */

import type { Store } from '../../../platform/store/store.ts'
import type { ZoneData } from '../../../protocols/dns/responder.ts'
import { MANAGED_SELECTORS } from './sender-security.ts'

/** `nameServer`: the host name under which the parent zone delegates to this service. */
export function dkimZone(store: Store, zone: string, nameServer: string): ZoneData {
  return {
    zone,
    nameServer,
    async lookUp(name) {
      const labels = name.slice(0, -zone.length - 1).split('.')
      const [selector, keyword, sid, ...more] = labels
      // `<sid>` and `_domainkey.<sid>` exist, without records of their own (RFC 8020).
      if (sid === undefined) return isKnown(keyword ?? selector ?? '')
      const isKeyName = keyword === '_domainkey' && more.length === 0
      if (!isKeyName || !MANAGED_SELECTORS.some((managed) => managed === selector)) return null
      const rows = await store.db
        .selectFrom('sender_security')
        .innerJoin('dkim_keys', 'dkim_keys.authority', 'sender_security.domain_name')
        .select('dkim_keys.public_record')
        .where('sender_security.sid', '=', sid)
        .where('dkim_keys.managed', '=', 1)
        .where('dkim_keys.selector', '=', selector as string)
        .execute()
      return rows.length > 0 ? rows.map((row) => row.public_record) : null
    },
  }

  async function isKnown(sid: string): Promise<readonly string[] | null> {
    if (sid === '') return []
    const row = await store.db
      .selectFrom('sender_security')
      .select('sid')
      .where('sid', '=', sid)
      .executeTakeFirst()
    return row ? [] : null
  }
}
