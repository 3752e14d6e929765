/** Makes one delivery ready to send: its message composed for this recipient, its envelope, its signatures. */
import type { Clock } from '../base/clock.ts'
import { type MimeMessage, messageSize } from '../base/mime-message.ts'
import type { Prepared } from '../delivery/engine.ts'
import { CODE_TEST_MODE, type Outcome } from '../delivery/outcome.ts'
import type { ClaimedDelivery } from '../delivery/queue.ts'
import { deliveryToken, type ReturnPathMac, returnPathOf } from '../delivery/return-path.ts'
import { type SigningKey, signMessage } from '../dkim/sign.ts'
import type { SigningKeys } from '../domain-keys/signing-keys.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { SuppressionCheck } from '../suppressions/check.ts'
import { eventMessage } from './accept.ts'
import { buildMessage, needsUtf8 } from './build.ts'
import type { MessageRecord } from './content.ts'
import type { MessageRecords } from './records.ts'

export interface PrepareParts {
  records: MessageRecords
  domains: DomainDirectory
  signingKeys: SigningKeys
  suppressions: SuppressionCheck
  blobs: BlobStore
  clock: Clock
  returnPathMac: ReturnPathMac
  headerPrefix: string
  storageUrl: string
}

const TEST_MODE: Outcome = { kind: 'delivered', code: CODE_TEST_MODE, message: 'test mode', enhanced: null }

/** @throws when the message or its domain is gone or cannot be read: the delivery is tried again later */
export async function prepareDelivery(parts: PrepareParts, delivery: ClaimedDelivery): Promise<Prepared> {
  const record = await parts.records.byId(delivery.message_pk)
  if (!record) throw new Error(`Message ${delivery.message_pk} of delivery ${delivery.id} is gone`)
  const about = eventMessage(record, parts.storageUrl)
  const domain = await parts.domains.byId(delivery.domain_id)
  if (!domain) return { kind: 'decided', about, outcome: rejected('The domain was deleted') }
  if (domain.state === 'disabled')
    return { kind: 'decided', about, outcome: rejected('The domain is disabled') }

  const { tags } = record.summary
  const suppressed = await parts.suppressions.suppressionOf(domain.id, delivery.recipient, tags)
  if (suppressed) return { kind: 'decided', about, outcome: suppressed }

  const utf8 = needsUtf8([delivery.recipient, record.summary.sender, ...record.summary.recipients])
  const token = deliveryToken(delivery.id, parts.returnPathMac)
  const extra: [string, string][] = [[`${parts.headerPrefix}Sid`, token]]
  const message = await buildMessage(record.content, extra, { seed: record.id, utf8 }, parts.blobs)
  if (record.options.testMode) return { kind: 'decided', about, outcome: TEST_MODE }

  const keys = record.options.dkim ? await parts.signingKeys.active(domain.dkimAuthority) : []
  const signing = keysFor(record, keys)
  const signed = await sign(message, signing, record.createdAt)
  return {
    kind: 'send',
    about,
    returnPath: returnPathOf(delivery.id, domain.mailfromHost, parts.returnPathMac),
    message: signed,
    sizeBytes: messageSize(signed),
    utf8,
    tls: {
      required: record.options.requireTls ?? domain.requireTls,
      verify: !(record.options.skipVerification ?? domain.skipVerification),
    },
    primaryDkim: signing[0] ? `${signing[0].selector}._domainkey.${signing[0].domain}` : null,
  }
}

const rejected = (description: string): Outcome => ({
  kind: 'rejected',
  reason: description,
  description: '',
})

/**
 * Active RSA keys take turns, message by message; an Ed25519 key signs besides (domain-keys.md rule 10).
 * The turn follows the message's time, so that a retry is signed alike.
 */
function keysFor(record: MessageRecord, keys: readonly SigningKey[]): SigningKey[] {
  const rsa = keys.filter((key) => key.algorithm === 'rsa')
  const turn = rsa[Math.floor(record.createdAt) % Math.max(rsa.length, 1)]
  return [...(turn ? [turn] : []), ...keys.filter((key) => key.algorithm === 'ed25519')]
}

async function sign(
  message: MimeMessage,
  keys: readonly SigningKey[],
  signedAt: number,
): Promise<MimeMessage> {
  const signatures = await signMessage(message, keys, { signedAt: new Date(signedAt) })
  return { headers: [...signatures, ...message.headers], body: message.body }
}
