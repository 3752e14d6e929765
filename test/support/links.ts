/** Tracking links as the service creates them, for a message that a sink received. */
import { deliveryOfReturnPath } from '../../src/mail/deliver/attempt/return-path.ts'
import { createSealer } from '../../src/platform/store/secrets/sealing.ts'
import { createTokens, type Unsubscription } from '../../src/sending/tracking/links/tokens.ts'
import type { TestService } from './service.ts'
import type { SinkMessage } from './smtp-sink.ts'

/** SENDWRIGHT_SECRET for the service. */
export const LINK_SECRET = 'secret-of-the-links-0123456789abcdef'

const sealer = createSealer(LINK_SECRET)
export const testTokens = createTokens(sealer)

export interface Links {
  deliveryId: string
  open: string
  click(url: string): string
  unsubscribe(more?: Partial<Unsubscription>): string
}

/** URLs of the copy, on the service itself. */
export async function linksOf(service: TestService, message: SinkMessage): Promise<Links> {
  const mac = (data: Uint8Array) => sealer.mac('return-path', data)
  const deliveryId = deliveryOfReturnPath(message.envelope.from, mac)
  if (deliveryId === null) throw new Error(`${message.envelope.from} names no delivery`)
  const { body } = await service.call('GET', `/v4/domains/${service.domain}`)
  const { url } = service
  return {
    deliveryId,
    open: `${url}/o/${testTokens.open(deliveryId)}`,
    click: (target) => `${url}/c/${testTokens.click(deliveryId, { url: target })}`,
    unsubscribe: (more = {}) =>
      `${url}/u/${testTokens.unsubscribe({
        scope: 'domain',
        accountId: service.service.first.accountId,
        domainId: body.domain.id,
        recipient: message.envelope.to[0] ?? '',
        tags: [],
        listSid: null,
        deliveryId,
        ...more,
      })}`,
  }
}
