/** The second signature of a message (messages.md rule 37). */
import { createPublicKey } from 'node:crypto'
import type { SigningKey } from '../../protocols/dkim/sign.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import type { SigningKeys } from '../../sending/domains/keys/signing-keys.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { isProven, ownerOf } from '../../sending/domains/names/name-owner.ts'
import type { KeyName } from '../record/options.ts'

export type SecondaryKeys = ReturnType<typeof createSecondaryKeys>

/**
 * The key `name` to sign with in addition to the domain's own, under the name `published` if DNS confirms that; null: the account
 * has no such key.
 */
export async function secondaryKey(
  keys: SecondaryKeys,
  accountId: string,
  name: KeyName,
  published: KeyName | null,
): Promise<SigningKey | null> {
  const key = await keys.find(accountId, name)
  if (!key || !published) return key
  const isPublished = await keys.isPublished(accountId, published, key)
  return isPublished ? { ...key, domain: published.domain, selector: published.selector } : key
}

/** Finds keys among the account's own domains, and their names in DNS. */
export function createSecondaryKeys(parts: {
  signingKeys: SigningKeys
  domains: DomainDirectory
  resolver: Resolver
}) {
  const { signingKeys, domains, resolver } = parts
  return {
    /** The active key of that name if the account owns it, else null. */
    async find(accountId: string, { domain, selector }: Pick<KeyName, 'domain' | 'selector'>) {
      if ((await domains.byName(domain))?.accountId !== accountId) return null
      const active = await signingKeys.active(domain)
      return active.find((key) => key.selector.toLowerCase() === selector) ?? null
    },
    /** True if DNS publishes the key under the other name, and that is no other account's. */
    async isPublished(
      accountId: string,
      { domain, selector }: Pick<KeyName, 'domain' | 'selector'>,
      key: SigningKey,
    ) {
      const owner = await ownerOf(domains, domain)
      if (owner !== null && isProven(owner) && owner.accountId !== accountId) return false
      const { records } = await resolver.query(`${selector}._domainkey.${domain}`, 'TXT')
      const own = createPublicKey(key.privateKey)
      const der = own.export({ type: 'spki', format: 'der' }).toString('base64')
      // RFC 8463 §4: Ed25519 keys are published bare, without the SubjectPublicKeyInfo around them.
      const bare =
        key.algorithm === 'ed25519' ? Buffer.from(der, 'base64').subarray(-32).toString('base64') : der
      return records.some((text) => {
        const published = /(?:^|;)\s*p=([^;]*)/.exec(text)?.[1]?.replace(/\s/g, '')
        return published === der || published === bare
      })
    },
  }
}
