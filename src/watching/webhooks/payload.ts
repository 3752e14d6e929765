/**
 * The body of a webhook and its two signatures: the contract's, over timestamp and token (rule 16), and one in the
 * headers over timestamp and body, which also proves that the body was not changed in transit.
 */
import { createHmac } from 'node:crypto'
import { randomHex } from '../../base/ids.ts'
import type { Of } from '../../base/shape.ts'
import type { EVENT_DATA, SIGNATURE } from './shapes.ts'

export interface WebhookEvent {
  accountId: string
  /** Null: the account is no subaccount. */
  parentId: string | null
  domainName: string
  /** The stored event. */
  payload: Readonly<Record<string, unknown>>
}

/** Signing keys of the event's account and, if that is a subaccount, of its parent. */
export interface SigningKeys {
  own: string
  parent: string | null
}

const TOKEN_BYTES = 25

/** HMAC-SHA256 over the timestamp followed directly by the token. */
export function signToken(key: string, timestamp: string, token: string): Of<typeof SIGNATURE> {
  const signature = createHmac('sha256', key).update(timestamp).update(token).digest('hex')
  return { timestamp, token, signature }
}

const newToken = () => randomHex(TOKEN_BYTES)

/** `event-data` of a webhook (rule 13). */
export const eventDataOf = (event: WebhookEvent) =>
  ({
    ...event.payload,
    account: { id: event.accountId, ...(event.parentId && { 'parent-id': event.parentId }) },
    domain: { name: event.domainName },
  }) as Of<typeof EVENT_DATA>

/** Body and headers of one attempt at `nowMs`; every attempt has its own token (rule 19). */
export function webhookRequest(
  event: WebhookEvent,
  keys: SigningKeys,
  headerPrefix: string,
  nowMs: number,
): SignedRequest {
  return signedRequest(eventDataOf(event), keys, headerPrefix, nowMs)
}

interface SignedRequest {
  body: Buffer
  headers: Record<string, string>
}

/** The same for any `event-data`. */
export function signedRequest(
  eventData: object,
  keys: SigningKeys,
  headerPrefix: string,
  nowMs: number,
): SignedRequest {
  const timestamp = String(Math.floor(nowMs / 1000))
  const document = {
    signature: signToken(keys.own, timestamp, newToken()),
    ...(keys.parent !== null && { 'parent-signature': signToken(keys.parent, timestamp, newToken()) }),
    'event-data': eventData,
  }
  const body = Buffer.from(JSON.stringify(document))
  return {
    body,
    headers: {
      'content-type': 'application/json',
      [`${headerPrefix}Webhook-Timestamp`]: timestamp,
      [`${headerPrefix}Webhook-Signature`]: `v1=${signBody(keys.own, timestamp, body)}`,
    },
  }
}

/** HMAC-SHA256 over timestamp, a dot and the body's bytes. */
export function signBody(key: string, timestamp: string, body: Uint8Array): string {
  return createHmac('sha256', key).update(`${timestamp}.`).update(body).digest('hex')
}
