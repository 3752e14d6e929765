/**
 * Which addresses sandbox domains may send to (messages.md rule 9). A sandbox domain needs no DNS record, so having one
 * proves nothing. In direct mode it reaches only the addresses that the operator names, and all addresses at the
 * account's own domains, if verified. Members of a list are checked one by one when their copies are prepared.
 */
import type { DeliveryMode } from '../../config.ts'
import type { DomainDirectory } from '../../domains/directory.ts'
import { addressKey, type Mailbox } from '../../mime/address.ts'
import type { SandboxGate } from './collaborators.ts'

export function createSandboxGate(parts: {
  mode: DeliveryMode['kind']
  /** Addresses as `addressKey` gives them, domains as `@example.org`, or `*`. */
  recipients: readonly string[]
  domains: Pick<DomainDirectory, 'byName'>
}): SandboxGate {
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
    const others = recipients.filter((mailbox) => !isNamed(mailbox)).map(({ domain }) => domain)
    for (const name of new Set(others)) if (!(await isOwn(accountId, name))) return false
    return true
  }

  return { mayReceive: ({ accountId }, recipients) => isOpen || allMay(accountId, recipients) }
}
