import type { DeliveryMode } from '../../platform/config/sending.ts'
import { SYSTEM_ACCOUNT_ID } from '../../platform/store/account-rows.ts'
import { addressKey, type Mailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'

/** Which addresses may get mail from a sandbox domain (messages.md rule 9). */
export type SandboxGate = ReturnType<typeof createSandboxGate>

export function createSandboxGate(parts: {
  mode: DeliveryMode['kind']
  /** Addresses as `addressKey` gives them, domains as `@example.org`, or `*`. */
  recipients: readonly string[]
  domains: Pick<DomainDirectory, 'byName'>
  /** Whether all of them are users of the account or have agreed; by address key. */
  haveAgreed(accountId: string, addresses: readonly string[]): Promise<boolean>
}) {
  const { mode, domains } = parts
  const named = new Set(parts.recipients)
  // Captured mail stays here, and a relay is the operator's own server.
  const isOpen = mode !== 'direct' || named.has('*')

  const isNamed = (mailbox: Mailbox) => named.has(addressKey(mailbox)) || named.has(`@${mailbox.domain}`)
  const isOwn = async (accountId: string, name: string) => {
    const domain = await domains.byName(name)
    return domain?.accountId === accountId && (domain.type === 'sandbox' || domain.verified)
  }

  const allMay = async (accountId: string, recipients: readonly Mailbox[]) => {
    const others = recipients.filter((mailbox) => !isNamed(mailbox))
    const own = new Set<string>()
    for (const name of new Set(others.map(({ domain }) => domain)))
      if (await isOwn(accountId, name)) own.add(name)
    const strangers = others.filter(({ domain }) => !own.has(domain)).map((mailbox) => addressKey(mailbox))
    return strangers.length === 0 || parts.haveAgreed(accountId, strangers)
  }

  return {
    mayReceive: ({ accountId }: Domain, recipients: readonly Mailbox[]) =>
      isOpen || accountId === SYSTEM_ACCOUNT_ID || allMay(accountId, recipients),
  }
}
